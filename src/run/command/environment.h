#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "berth/base/error.h"
#include "berth/lease/acquire.h"
#include "berth/source/probe_source.h"
#include "berth/sys/environment.h"
#include "berth/view/text.h"

namespace berth::command {

/// The environment of a command: its command line, the probe, and the streams.
class Environment {
 public:
  /// `words` is the whole command line without the program's name.
  explicit Environment(std::span<char*> words) : words_(words) {}

  /// Starts the probe, so that it loads the driver while this process reads its options. `source`
  /// returns an error of the start. `keep`: the probe will be asked more than once.
  void start_probe(bool keep);
  /// The same at the very start of this process, by a fork. REQUIRES: `ProbeOptions::is_forked`.
  void fork_probe();
  /// The machine as `kind` tells it.
  Result<source::Source*> source(source::SourceKind kind);

  /// The same for a session. This object must outlive the session.
  leasing::SourceAccess access(source::SourceKind kind);

  /// Ends the probe; `source` would start another.
  void end_probe() { probe_.reset(); }

  /// The style of text for the reader of this descriptor. A terminal has colours and a width. A
  /// pipe has neither, and gets the whole text.
  static view::Style style_of(int descriptor);

  std::span<char*> words() const { return words_; }

 private:
  std::span<char*> words_;
  std::optional<Result<source::ProbeSource>> probe_;
};

/// The options of a probe, as the environment sets them, with the program to start.
source::ProbeOptions probe_options();

/// Makes sure that the descriptors 0, 1 and 2 are open. If one were closed, the next file would get
/// its number, and the answer would be written into that file.
void keep_standard_descriptors();

/// A write beyond RLIMIT_FSIZE is an error from now on, and does not end this process. What it
/// starts is as it was.
void survive_limit_on_file_sizes();

/// Blocks no signal, and lets SIGTERM end this process, whatever its caller had set: by SIGTERM a
/// lease and a request are ended, here and in what this process starts. Other signals that the
/// caller ignores stay ignored, such as SIGHUP under nohup.
void hear_signals();

/// All of `text`, or an Error: `failure`. A reader that has gone away is an error and not a signal.
Result<void> write_all(int descriptor, std::string_view text);

/// Writes a part of a long text to standard output. The reader need not read it to its end: if the
/// reader has gone away (`head`), SIGPIPE ends this process without a message, as it ends `cat`.
Result<void> write_log(std::string_view text);

/// Writes whole lines to the error stream. If that fails, it is no error, because nobody is left to
/// read about it.
void write_error(std::string_view text);

/// Writes to the error stream while this process holds a lease or waits for one. Drops what no
/// reader takes within a moment (a full pipe, a terminal that Ctrl-S holds). False: some of it was
/// dropped. Uses SIGALRM.
bool mention(std::string_view words);

/// The path of this program's file. Its other programs are in the same folder.
Result<std::string> own_path();

/// The path by which this process starts more processes of Berth. After an upgrade, it is that of
/// the newer program.
Result<std::string> program_path();

/// The variables of this process: "NAME=value".
std::vector<std::string> own_environment();

}  // namespace berth::command
