#include "usage_command.h"

#include <fmt/format.h>

#include <ctime>
#include <string>
#include <utility>

#include "asked_history.h"
#include "berth/cli/usage_options.h"
#include "berth/command/environment.h"
#include "berth/history/usage_letter.h"
#include "berth/usage/history_question.h"
#include "berth/view/hosts_reader.h"
#include "berth/view/past_leases.h"
#include "berth/view/usage.h"

namespace berth::serve {
namespace {

Result<Usage> asked(const cli::PeerOptions& options, const UsageQuestion& question) {
  BERTH_LET(const auto answer, ask_agent(options, fmt::format("/api/v1/usage?since={}s&by={}",
                                                              question.since_s, to_text(question.by))));
  auto usage = view::usage_from_json(answer.document);
  if (!usage) return std::unexpected(context(usage.error(), answer.asking));
  return usage;
}

Result<Usage> read(const std::string& path, const UsageQuestion& question) {
  BERTH_LET(auto file, open_history(path));
  const std::int64_t now_s = std::time(nullptr);
  auto usage = file.usage(question.by, {history::step_of(now_s - question.since_s, 3600), now_s});
  if (!usage) return std::unexpected(fault_of_history(path, usage.error()));
  return std::move(*usage);
}

constexpr std::int64_t kPointsOfLetter = 500;  // for each device: of a week, steps of 20 minutes

template <class Read>
auto read_answer(const AskedHistory& answer, Read read) -> decltype(read(answer.document)) {
  auto value = read(answer.document);
  if (!value) return std::unexpected(context(value.error(), answer.asking));
  return value;
}

Result<history::LetterFacts> asked_for_letter(const cli::PeerOptions& options,
                                              const UsageQuestion& question) {
  const std::string since = fmt::format("since={}s", question.since_s);
  history::LetterFacts facts;
  BERTH_LET(const auto hosts_answer, ask_agent(options, "/api/v1/hosts"));
  BERTH_LET(auto hosts,
            read_answer(hosts_answer, [](std::string_view text) { return view::read_hosts(text); }));
  if (hosts.is_hub || hosts.hosts.size() != 1)
    return fail(ErrorCode::usage, "--letter is about one machine: ask its agent, and not a hub");
  facts.host = hosts.hosts.front().name;
  facts.now = hosts.hosts.front().report;
  BERTH_LET(facts.usage, asked(options, question));
  const auto leases = ask_agent(options, "/api/v1/past-leases?" + since);
  facts.leases = leases ? read_answer(*leases, view::recorded_leases_from_json)
                        : Result<RecordedLeases>(std::unexpected(leases.error()));
  if (!facts.now) return fail(ErrorCode::failure, hosts.hosts.front().error);
  for (const Device& device : facts.now->facts.snapshot.devices) {
    const auto answer = ask_agent(
        options, fmt::format("/api/v1/history?device={}&{}&points={}", device.uuid, since, kPointsOfLetter));
    // Nothing is known of a GPU that has only just come.
    if (!answer) continue;
    BERTH_LET(auto history, read_answer(*answer, view::device_history_from_json));
    facts.devices.push_back(std::move(history));
  }
  return facts;
}

Result<history::LetterFacts> read_for_letter(const std::string& path, const UsageQuestion& question) {
  const std::int64_t now_s = std::time(nullptr);
  history::LetterFacts facts;
  BERTH_LET(facts.usage, read(path, question));
  BERTH_LET(auto file, open_history(path));
  const auto fault = [&path](const history::DatabaseError& error) {
    return std::unexpected(fault_of_history(path, error));
  };
  auto leases = file.recorded_leases({.since_s = question.since_s}, now_s);
  if (!leases) return fault(leases.error());
  facts.leases = *std::move(leases);
  const auto uuids = file.device_uuids();
  if (!uuids) return fault(uuids.error());
  for (const std::string& uuid : *uuids) {
    auto device =
        file.device_history({.uuid = uuid, .since_s = question.since_s, .points = kPointsOfLetter}, now_s);
    if (!device) return fault(device.error());
    if (*device) facts.devices.push_back(**std::move(device));
  }
  return facts;
}

Result<command::Output> letter(const cli::UsageOptions& options, const UsageQuestion& question) {
  if (options.json || question.by != UsageBy::user)
    return fail(ErrorCode::usage, "--letter is text about users: without --json and --by");
  BERTH_LET(const auto facts, options.file.empty() ? asked_for_letter(options.asking, question)
                                                   : read_for_letter(options.file, question));
  return command::Output{.out = history::usage_letter(facts, command::Environment::style_of(1))};
}

}  // namespace

Result<command::Output> usage_command(std::span<char*> words) {
  cli::UsageOptions options;
  const command::Syntax syntax = cli::usage_syntax(options);
  if (const auto parsed = command::parse(syntax, "berth usage", words); !parsed)
    return std::unexpected(parsed.error());
  BERTH_LET(const auto question, usage_question({{"since", options.since}, {"by", options.by}}));
  if (!options.file.empty() && !options.asking.url.empty())
    return fail(ErrorCode::usage, "--file and --url contradict each other: give one of them");
  if (options.letter) return letter(options, question);
  BERTH_LET(const auto usage,
            options.file.empty() ? asked(options.asking, question) : read(options.file, question));
  return command::Output{.out = options.json ? view::usage_json(usage, view::Layout::lines)
                                             : view::usage_table(usage, command::Environment::style_of(1))};
}

}  // namespace berth::serve
