#include "berth/jobs/model/job_output.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "berth/base/record.h"
#include "berth/base/text.h"

namespace berth {
namespace {

constexpr char kKeys = 'k';
constexpr char kWindow = 'w';

// A screen or two of text. A program that paints its screen is asked to do so again.
constexpr std::size_t kMostRecent = 16U << 10U;
// Some seconds of a slow line.
constexpr std::size_t kMostShown = 256U << 10U;
constexpr std::string_view kDropped = "\r\n[berth: more was shown than this terminal could take]\r\n";

/// A private mode of terminals, and what a shell expects of it.
struct PrivateMode {
  int number = 0;
  bool is_set = false;
};
// Keys of the cursor and their focus, the mouse, pasted text, the second screen. That one last: it
// brings the first back as it was.
constexpr std::array kModes{PrivateMode{1},    PrivateMode{25, true}, PrivateMode{1000}, PrivateMode{1002},
                            PrivateMode{1003}, PrivateMode{1004},     PrivateMode{1006}, PrivateMode{2004},
                            PrivateMode{47},   PrivateMode{1047},     PrivateMode{1049}};
// Longer ones are none of those.
constexpr std::size_t kLongestArguments = 64;

}  // namespace

std::string encode(const TypedKeys& keys) {
  return kKeys + keys.text;
}

std::string encode(const WindowSize& size) {
  return fmt::format("{}{} {}", kWindow, size.rows, size.columns);
}

std::optional<TerminalPacket> decode_terminal_packet(std::string_view packet) {
  if (packet.empty()) return std::nullopt;
  const std::string_view rest = packet.substr(1);
  if (packet.front() == kKeys) return TypedKeys{std::string(rest)};
  if (packet.front() != kWindow) return std::nullopt;
  const auto parts = parts_at(rest, ' ');
  if (parts.size() != 2) return std::nullopt;
  const auto rows = number_from_text<unsigned short>(parts[0]);
  const auto columns = number_from_text<unsigned short>(parts[1]);
  // A terminal without a size says 0.
  if (!rows || !columns || *rows == 0 || *columns == 0) return std::nullopt;
  return WindowSize{*rows, *columns};
}

void RecentlyShown::add(std::string_view text) {
  if (text.size() > kMostRecent) text.remove_prefix(text.size() - kMostRecent);
  text_ += text;
  if (text_.size() <= kMostRecent) return;
  // Half of it at once, so that not each line moves all others.
  std::size_t begin = text_.size() - kMostRecent / 2;
  if (const std::size_t end = text_.find('\n', begin); end != std::string::npos && end + 1 < text_.size())
    begin = end + 1;
  text_.erase(0, begin);
}

void ShownTo::show(std::string_view text) {
  if (drops_ || waiting_.size() + text.size() > kMostShown)
    drops_ = true;
  else
    waiting_ += text;
}

void ShownTo::sent(std::size_t bytes, const RecentlyShown& recent) {
  waiting_.erase(0, bytes);
  if (!waiting_.empty() || !drops_) return;
  drops_ = false;
  waiting_ = std::string(kDropped) + recent.text();
}

Result<char> detach_key_from_text(std::string_view text) {
  // The keys that are control characters: Ctrl with @, A to Z, [, \, ], ^ or _.
  if (text.size() == 2 && text.front() == '^') {
    const char key =
        text.back() >= 'a' && text.back() <= 'z' ? static_cast<char>(text.back() - 'a' + 'A') : text.back();
    if (key >= '@' && key <= '_') return static_cast<char>(key - '@');
  }
  return fail(ErrorCode::usage, R"(must be a key with Ctrl, as in ^\ or ^a)");
}

std::string key_for_people(char key) {
  return fmt::format("Ctrl-{}", static_cast<char>(key + '@'));
}

void ScreenModes::watch(std::string_view shown) {
  for (const char each : shown) {
    switch (in_) {
      case In::text:
        if (each == '\x1b') in_ = In::escape;
        break;
      case In::escape:
        in_ = each == '[' ? In::sequence : In::text;
        break;
      case In::sequence:
        in_ = each == '?' ? In::arguments : In::text;
        arguments_.clear();
        break;
      case In::arguments:
        if ((each >= '0' && each <= '9') || each == ';') {
          if (arguments_.size() < kLongestArguments) arguments_ += each;
        } else {
          end_sequence(each);
          in_ = In::text;
        }
        break;
    }
  }
}

void ScreenModes::end_sequence(char last) {
  if (last != 'h' && last != 'l') return;
  for (const std::string_view part : parts_at(arguments_, ';')) {
    const auto number = number_from_text<int>(part);
    const auto* const mode = number ? std::ranges::find(kModes, *number, &PrivateMode::number) : kModes.end();
    if (mode == kModes.end()) continue;
    if ((last == 'h') == mode->is_set)
      changed_.erase(mode->number);
    else
      changed_.insert(mode->number);
  }
}

std::string ScreenModes::undo() const {
  std::string text;
  for (const PrivateMode& mode : kModes) {
    if (changed_.contains(mode.number))
      text += fmt::format("\x1b[?{}{}", mode.number, mode.is_set ? 'h' : 'l');
  }
  // Its colours may be any.
  if (!text.empty()) text.insert(0, "\x1b[0m");
  return text;
}

namespace {

// A file system gives back whole blocks only, and none has larger ones.
constexpr std::uint64_t kBlock = 64 << 10;

std::uint64_t whole_blocks(std::uint64_t bytes) {
  return bytes / kBlock * kBlock;
}

}  // namespace

std::uint64_t cut_begin(std::uint64_t limit) {
  return whole_blocks(limit / 4);
}

std::optional<OutputCut> next_cut(std::uint64_t size, OutputCut so_far, std::uint64_t limit) {
  const std::uint64_t missing = so_far.end - so_far.begin;
  if (size <= missing || size - missing <= limit) return std::nullopt;
  const std::uint64_t begin = cut_begin(limit);
  return OutputCut{begin, whole_blocks(size - (limit - begin) / 2)};
}

std::string cut_mark(const OutputCut& cut, std::uint64_t limit) {
  const auto mark = [&](std::uint64_t bytes) {
    return fmt::format(
        "\n[berth: {:>16} bytes of the output are cut out here, so that it takes {} at most]\n", bytes,
        bytes_for_people(limit));
  };
  return mark(cut.end - cut.begin + mark(0).size());
}

std::uint64_t bytes_cut(const OutputCut& cut, std::uint64_t limit) {
  return cut.end == cut.begin ? 0 : cut.end - cut.begin + cut_mark(cut, limit).size();
}

}  // namespace berth
