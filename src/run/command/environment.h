#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "berth/base/error.h"
#include "berth/lease/session.h"
#include "berth/source/source.h"
#include "berth/sys/job_process.h"
#include "berth/sys/process.h"
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
  /// Whether there are colours from now on, whatever the reader is; nullopt: as style_of says.
  static void set_colour(std::optional<bool> wanted);

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

/// Asks the person at the terminal: "cancel 3 jobs? [y/N] ". True only for an answer that begins
/// with y. REQUIRES: the input is a terminal.
bool confirm(std::string_view question);

/// The path of this program's file. Its other programs are in the same folder.
Result<std::string> own_path();

/// The path by which this process starts more processes of Berth. After an upgrade, it is that of
/// the newer program.
Result<std::string> program_path();

/// The variables of this process: "NAME=value".
std::vector<std::string> own_environment();

/// The name of the standard input where a file is asked for.
inline constexpr std::string_view kInput = "-";

/// The whole file, or the standard input, which may be pipes. Error: `usage` if it is longer than
/// `most` bytes; `failure` if it cannot be read; both with its name.
Result<std::string> text_of_input(const std::string& name, std::size_t most);

/// What a command answers. `main` writes all of it in one go, and `out` only if it is complete.
struct Output {
  std::string out = {};
  std::string err = {};  ///< notes and warnings, whole lines
  int status = 0;
  std::string done = {};  ///< what is done, also if nobody can be told `out`; "": nothing
};

/// Writes the result, and gives the exit status. A failure writes nothing to the output stream.
int report(const Result<Output>& result);

/// Writes a sentence for the user to the error stream, at once.
void print_message(const std::string& sentence);

/// The sentences as whole lines for the error stream.
std::string as_lines(const std::vector<std::string>& sentences);

/// What a program has printed.
struct Said {
  std::string out;
  std::string err;
  /// nullopt: it still ran when the patience was over, and goes on running.
  std::optional<ProcessEnd> ending;
};

/// Runs a program of Berth for what it prints; its input is empty. Of each of its two streams
/// `most_bytes` + 1 bytes are read, so that the caller sees if there is more than `most_bytes`.
/// Error: `failure` if it cannot be started.
Result<Said> ask_program(std::string program, std::vector<std::string> words,
                         std::chrono::milliseconds patience, std::size_t most_bytes);
/// As above, but a program that is late is killed. Error: also `timed_out`, with `late` as the
/// message.
Result<Said> ask_program_in_time(std::string program, std::vector<std::string> words,
                                 std::chrono::milliseconds patience, std::size_t most_bytes,
                                 std::string_view late);

/// The first line of what a program said, without the name of our program before it, ready to be
/// shown.
std::string first_line(std::string_view said);

/// First words for berth-serve if it is to ask another server instead of serving.
inline constexpr std::string_view kUsageWord = "__usage";
inline constexpr std::string_view kListWord = "__list";
inline constexpr std::string_view kSimulateWord = "__simulate";
inline constexpr std::string_view kPastWord = "__past";
inline constexpr std::string_view kStoreWord = "__store";

/// The path of berth-serve, in the same folder as berth.
Result<std::string> berth_serve_path();

/// Replaces this process by berth-serve, which has what only a few commands need: the network, and
/// SQLite. `task`: its first word, "" for none. Returns only if that fails.
Error become_berth_serve(std::string_view task, std::span<char* const> words);

}  // namespace berth::command
