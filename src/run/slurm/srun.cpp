#include "berth/slurm/srun.h"

#include <algorithm>
#include <string_view>

#include "berth/base/text.h"
#include "berth/request/request_fields.h"

namespace berth {
namespace {

// A type of GPU, as gres.conf names it.
bool is_type(std::string_view text) {
  const auto fits = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
           c == '-' || c == '.';
  };
  return !text.empty() && std::ranges::all_of(text, fits);
}

// The type that the conditions ask for, "" for any.
Result<std::string> type_of(const std::vector<Expression>& conditions) {
  constexpr std::string_view kName = "name ~ ";
  std::string type;
  for (const Expression& condition : conditions) {
    const std::string_view text = condition.text();
    const std::string_view value = text.starts_with(kName) ? text.substr(kName.size()) : "";
    if (!is_type(value) || !type.empty())
      return fail(ErrorCode::usage,
                  "Slurm cannot be asked for \"{}\": it knows the number of GPUs and one type, which "
                  "--name says as gres.conf does",
                  printable(text));
    type = value;
  }
  return type;
}

std::string clock_time(std::int64_t seconds) {
  return fmt::format("{}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
}

}  // namespace

Result<std::vector<std::string>> srun_options(const SrunWish& wish) {
  const Request& request = wish.request;
  for (const RequestField& field : request_fields()) {
    if (field.slurm != SlurmAnswer::refused || !is_said(field, request)) continue;
    // A request with --memory is shared as well, and does not say which of the two the user typed.
    const std::string_view or_else = is_stored_in(&Request::shared, field) ? "memory or --" : "";
    return fail(ErrorCode::usage, "Slurm gives whole GPUs that it chooses itself: leave out --{}{}", or_else,
                field.name);
  }
  BERTH_LET(const auto type, type_of(request.conditions));
  std::vector<std::string> options{
      "--nodes=1", "--ntasks=1",
      fmt::format("--gres=gpu:{}{}{}", type, type.empty() ? "" : ":", request.count)};
  if (request.time_s) options.push_back("--time=" + clock_time(*request.time_s));
  // Without a number srun waits for some seconds.
  if (wish.wait_s) options.push_back(fmt::format("--immediate={}", std::max<std::int64_t>(*wish.wait_s, 1)));
  if (!wish.note.empty()) options.push_back("--comment=" + wish.note);
  if (!wish.only.empty()) options.push_back(fmt::format("--nodelist={}", fmt::join(wish.only, ",")));
  if (!wish.without.empty()) options.push_back(fmt::format("--exclude={}", fmt::join(wish.without, ",")));
  if (!wish.folder.empty()) options.push_back("--chdir=" + wish.folder);
  if (wish.passed_variables == "none")
    options.emplace_back("--export=NONE");
  else if (wish.passed_variables != "all")
    options.push_back("--export=" + wish.passed_variables);
  if (wish.on_terminal) options.emplace_back("--pty");
  return options;
}

}  // namespace berth
