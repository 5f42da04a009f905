#include "berth/cli/known_past.h"

#include <fmt/format.h>

#include <chrono>
#include <utility>
#include <vector>

#include "berth/command/ask_program.h"
#include "berth/command/serve_program.h"
#include "berth/view/past_leases.h"

namespace berth::cli {
namespace {

constexpr std::chrono::seconds kPatience{5};
constexpr std::size_t kLongestPast = std::size_t{16} << 20U;

std::vector<std::string> words_of(const PeerOptions& asking, std::int64_t since_s) {
  std::vector<std::string> words{std::string(command::kPastWord), fmt::format("--since={}s", since_s)};
  const auto add = [&](std::string_view name, const std::string& value) {
    if (!value.empty()) words.push_back(fmt::format("--{}={}", name, value));
  };
  add("url", asking.url);
  add("token-file", asking.token_file);
  add("ca-file", asking.trust.authorities);
  add("cert-file", asking.trust.certificate);
  add("key-file", asking.trust.key);
  if (asking.insecure) words.emplace_back("--insecure");
  return words;
}

}  // namespace

Result<RecordedLeases> known_past(const PeerOptions& asking, std::int64_t since_s) {
  BERTH_LET(auto program, command::berth_serve_path());
  BERTH_LET(const auto said,
            command::ask_program_in_time(std::move(program), words_of(asking, since_s), kPatience,
                                         kLongestPast, "the agent does not tell the past in time"));
  if (!said.ending || said.ending->exit_status != 0)
    return fail(ErrorCode::failure, command::first_line(said.err));
  return view::recorded_leases_from_json(said.out);
}

}  // namespace berth::cli
