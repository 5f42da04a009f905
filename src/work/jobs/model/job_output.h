#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <variant>

#include "berth/base/error.h"
#include "berth/job/job.h"

// What passes between the terminal of a job and those of its user that are attached to it. The
// process of the task sends what the job's terminal shows, as it is. An attached process sends
// packets: keys, and the size of its window.
namespace berth {

struct TypedKeys {
  std::string text;

  bool operator==(const TypedKeys&) const = default;
};
struct WindowSize {
  unsigned short rows = 0;
  unsigned short columns = 0;

  bool operator==(const WindowSize&) const = default;
};
using TerminalPacket = std::variant<TypedKeys, WindowSize>;

/// The most that a packet may have of keys.
inline constexpr std::size_t kMostKeys = 4096;
std::string encode(const TypedKeys& keys);
std::string encode(const WindowSize& size);
/// nullopt: a packet of another version, to be ignored.
std::optional<TerminalPacket> decode_terminal_packet(std::string_view packet);

/// The end of what a terminal has shown, for whoever looks at it only now.
class RecentlyShown {
 public:
  void add(std::string_view text);
  /// From the beginning of a line on, unless a line is longer than all that is kept.
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

/// What one attached terminal has yet to get. It may be slow or stopped, and the job waits for
/// none: where too much waits, the rest is dropped. When the terminal reads again it is told
/// so, and gets what was shown last.
class ShownTo {
 public:
  void show(std::string_view text);
  std::string_view next() const { return waiting_; }
  /// So many bytes of `next` are on their way.
  void sent(std::size_t bytes, const RecentlyShown& recent);

 private:
  std::string waiting_;
  bool drops_ = false;  ///< until all that waits was sent
};

/// The key that ends an attachment, as one control character. Ctrl-\ as in dtach and abduco.
inline constexpr char kDetachKey = '\x1c';
/// Reads "^A", "^]" and the like. Error: `usage`.
Result<char> detach_key_from_text(std::string_view text);
/// "Ctrl-\".
std::string key_for_people(char key);

/// Watches what a job does to the terminal that shows it, to undo that for the shell that comes
/// after: a second screen, a hidden cursor, reports of the mouse.
class ScreenModes {
 public:
  void watch(std::string_view shown);
  /// What to write to the terminal; "": the job has left nothing to undo.
  std::string undo() const;

 private:
  void end_sequence(char last);

  enum class In { text, escape, sequence, arguments };
  In in_ = In::text;
  std::string arguments_;
  std::set<int> changed_;  ///< private modes that are not as a shell expects them
};

/// The part of an output that is removed from its file, in bytes; `begin` == `end`: none.
struct OutputCut {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;

  bool operator==(const OutputCut&) const = default;
};

/// The beginning of the part that is cut out: the first quarter of the bound stays.
std::uint64_t cut_begin(std::uint64_t limit);

/// The part to cut out of a file of this size so that it takes at most `limit`; `so_far` is missing
/// already. What stays after the cut is half of what may stay there, so that the next cut is not
/// due at once. nullopt: nothing is to be cut. REQUIRES: limit >= kLeastOutput.
std::optional<OutputCut> next_cut(std::uint64_t size, OutputCut so_far, std::uint64_t limit);

/// The line that says what is missing. It is written over the last bytes before the cut. For one
/// limit it has always the same length, so that it can be written again in its place.
std::string cut_mark(const OutputCut& cut, std::uint64_t limit);

/// How many bytes of the output are lost.
std::uint64_t bytes_cut(const OutputCut& cut, std::uint64_t limit);

}  // namespace berth
