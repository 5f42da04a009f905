#include "berth/hosts/far_call.h"

#include "berth/base/fail.h"
#include "berth/base/printable.h"
#include "berth/hosts/ask_hosts.h"
#include "berth/hosts/lab_hosts.h"
#include "berth/hosts/ssh.h"
#include "berth/sys/job_process.h"

namespace berth::hosts {
namespace {

// The reason that one of our programs printed, without its name.
std::string failure_in(const Called& called) {
  constexpr std::string_view kOurs = "berth: ";
  std::string_view text = called.err;
  if (text.starts_with(kOurs)) text.remove_prefix(kOurs.size());
  while (text.ends_with('\n')) text.remove_suffix(1);
  if (text.empty()) return fmt::format("berth has ended there with status {}", called.exit_status);
  return std::string(text);
}

std::vector<Result<Called>> call_on_each(const SshProgram& ssh, const std::vector<LabHost>& hosts,
                                         const std::vector<std::string>& words) {
  EnvoyAsk ask;
  ask.mode = EnvoyMode::call;
  ask.words = words;
  std::vector<Result<Called>> all;
  for (auto& answer : ask_hosts(ssh, hosts, ask, lease_ask_of({}))) {
    if (!answer) {
      all.push_back(std::unexpected(std::move(answer).error()));
    } else if (auto* called = std::get_if<Called>(&*answer)) {
      all.push_back(std::move(*called));
    } else {
      all.push_back(fail(ErrorCode::failure, "it does not answer what it was asked"));
    }
  }
  return all;
}

}  // namespace

std::vector<Result<std::string>> documents_of(const std::vector<LabHost>& hosts,
                                              const std::vector<std::string>& words) {
  std::vector<Result<std::string>> all;
  for (auto& called : call_on_each(ssh_of_environment(), hosts, words)) {
    if (!called)
      all.push_back(std::unexpected(std::move(called).error()));
    else if (called->exit_status != 0)
      all.push_back(fail(ErrorCode::failure, failure_in(*called)));
    else
      all.push_back(std::move(called->out));
  }
  return all;
}

Error become_call_there(const LabHost& host, std::string_view words) {
  const sys::Command call = ssh_call(ssh_of_environment(), host, words);
  sys::JobCommand command;
  command.words.push_back(call.program);
  command.words.insert(command.words.end(), call.arguments.begin(), call.arguments.end());
  return {ErrorCode::failure, sys::exec_job(command).message};
}

Result<command::Output> call_there(const LabHost& host, const std::vector<std::string>& words) {
  const auto called = call_on_each(ssh_alone(), {host}, words).front();
  if (!called) return fail(called.error().code, "{}: {}", host.name, called.error().message);
  const auto named = [&](std::string_view text) {
    return text.empty() ? "" : fmt::format("{}: {}", host.name, printable_lines(text));
  };
  return command::Output{.out = named(called->out), .err = named(called->err), .status = called->exit_status};
}

}  // namespace berth::hosts
