#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "berth/core/error.h"
#include "berth/lease/acquire.h"
#include "berth/render/text.h"
#include "berth/source/probe_source.h"

namespace berth::cli {

/// What a command finds around it.
class Environment {
 public:
  /// `words` is the whole command line without the program's name.
  explicit Environment(std::span<char*> words) : words_(words) {}

  /// Starts the probe, so that it loads the driver while this process reads its options. An error waits for
  /// `source`. `keep`: it will be asked more than once.
  void start_probe(bool keep);
  /// The machine as `kind` tells it.
  Result<source::Source*> source(source::SourceKind kind);

  /// The same for a session, which this must outlive.
  leasing::SourceAccess access(source::SourceKind kind);

  /// Ends the probe; `source` would start another.
  void end_probe() { probe_.reset(); }

  /// How to write for whoever reads this descriptor. A terminal has colours and a width; a pipe has neither,
  /// and gets all there is.
  static render::Style style_of(int descriptor);

  std::span<char*> words() const { return words_; }

 private:
  std::span<char*> words_;
  std::optional<Result<source::ProbeSource>> probe_;
};

/// A probe as the environment wants it, of the program that it names.
source::ProbeOptions probe_options();

/// Makes sure that 0, 1 and 2 are open: where one is closed, the next file would get its number, and the
/// answer would be written into it.
void keep_standard_descriptors();

/// All of `text`, or an Error: `failure`. A reader that has gone away is an error and not a signal.
Result<void> write_all(int descriptor, std::string_view text);

/// A part of a long text that nobody need read to its end, to standard output. Where the reader has gone away
/// (`head`), SIGPIPE ends this process without a word, as it ends `cat`.
Result<void> write_log(std::string_view text);

/// Whole lines for the error stream. That they cannot be written is no error: nobody is left to be told.
void write_error(std::string_view text);

/// Words for whoever reads the error stream now, while a lease is held or waited for: what nobody takes
/// within a moment (a full pipe, a terminal that Ctrl-S holds) is dropped. False: some of it was. Uses
/// SIGALRM.
bool mention(std::string_view words);

/// Text that the environment has, "" where it has none.
std::string_view variable(const char* name);

/// Where the file of this program lies; the programs that belong to it lie beside it.
Result<std::string> own_path();

}  // namespace berth::cli
