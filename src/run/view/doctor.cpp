#include "berth/view/doctor.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "berth/base/text_match.h"
#include "berth/view/text.h"

namespace berth::view {
namespace {

constexpr std::size_t kIndent = 6;

Tone tone_of(Level level) {
  constexpr std::array<Tone, 3> kTones{Tone::good, Tone::waiting, Tone::bad};
  return kTones[static_cast<std::size_t>(level)];
}

std::size_t count_of(const std::vector<Finding>& findings, Level level) {
  return static_cast<std::size_t>(std::ranges::count(findings, level, &Finding::level));
}

}  // namespace

std::string doctor_report(const std::vector<Finding>& findings, std::string_view what_is,
                          const Style& style) {
  constexpr std::array<std::string_view, 3> kMarks{"PASS", "WARN", "FAIL"};
  const std::string margin(kIndent, ' ');
  std::string text;
  for (const Finding& finding : findings) {
    const std::string line = fmt::format("{}: {}", finding.check, printable(finding.found));
    text += fmt::format("{}  {}\n",
                        toned(kMarks[static_cast<std::size_t>(finding.level)], tone_of(finding.level), style),
                        wrapped(line, style.width, kIndent));
    if (finding.remedy.empty()) continue;
    text += fmt::format("{}{}\n", margin, "-> " + wrapped(finding.remedy, style.width, kIndent + 3));
  }
  const std::size_t warnings = count_of(findings, Level::warn);
  const std::size_t failures = count_of(findings, Level::fail);
  text +=
      fmt::format("\n{}\n", failures > 0 ? fmt::format("{}, {}: {} not to be relied on until that is mended",
                                                       counted(failures, "failure"),
                                                       counted(warnings, "warning"), what_is)
                            : warnings > 0 ? fmt::format("works, with {}", counted(warnings, "warning"))
                                           : std::string("all is well"));
  return text;
}

}  // namespace berth::view
