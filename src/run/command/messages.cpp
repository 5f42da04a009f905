#include "berth/command/messages.h"

#include <fmt/format.h>

#include "berth/base/printable.h"
#include "berth/command/environment.h"

namespace berth::command {
namespace {

std::string as_line(const std::string& sentence) {
  return fmt::format("berth: {}\n", printable(sentence));
}

}  // namespace

void print_message(const std::string& sentence) {
  mention(as_line(sentence));
}

std::string as_lines(const std::vector<std::string>& sentences) {
  std::string lines;
  for (const std::string& sentence : sentences) lines += as_line(sentence);
  return lines;
}

}  // namespace berth::command
