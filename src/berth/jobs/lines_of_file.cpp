#include "berth/jobs/lines_of_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "berth/base/printable.h"
#include "berth/sys/descriptor.h"
#include "berth/sys/system_error.h"

namespace berth::jobs {
namespace {

constexpr std::size_t kLongestText = 16 << 20;

}  // namespace

Result<std::string> text_of_file(const std::string& name) {
  const bool input = name == kInput;
  const sys::Descriptor file(input ? ::dup(STDIN_FILENO)
                                   : ::open(name.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
  if (!file) return sys::fail_errno("opening " + printable(name));
  std::string text;
  std::array<char, 1 << 14> buffer;
  for (;;) {
    const ssize_t got = ::read(file.get(), buffer.data(), buffer.size());
    if (got < 0) return sys::fail_errno("reading " + printable(name));
    if (got == 0) return text;
    text.append(buffer.data(), static_cast<std::size_t>(got));
    if (text.size() > kLongestText) return fail(ErrorCode::usage, printable(name) + " is longer than 16 MiB");
  }
}

Result<Earlier> earlier_of(const JobSpool& spool, const Job& job) {
  Earlier earlier;
  BERTH_LET(const auto numbers, spool.numbers());
  for (const std::uint64_t number : numbers) {
    const auto other = spool.job(number);
    if (!other || !*other || (*other)->lines_of != job.lines_of || (*other)->folder != job.folder) continue;
    const auto text = spool.script(number);
    const auto standings = spool.standings(number, **other);
    if (!text || !standings) continue;
    const std::vector<unsigned> lines = indices_of(**other);
    for (std::size_t i = 0; i < lines.size(); ++i) {
      if (counts_of({&(*standings)[i], 1}).done == 1) ++earlier.done[std::string(line_of(*text, lines[i]))];
    }
    if (std::ranges::all_of(*standings, is_over)) continue;
    earlier.alive = NumberedJob{number, **other};
    earlier.text_of_alive = *text;
  }
  return earlier;
}

void leave_out(std::vector<unsigned>& lines, std::string_view text, DoneCommands done) {
  std::erase_if(lines, [&](unsigned number) {
    const auto found = done.find(line_of(text, number));
    if (found == done.end() || found->second == 0) return false;
    --found->second;
    return true;
  });
}

}  // namespace berth::jobs
