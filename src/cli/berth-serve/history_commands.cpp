#include "history_commands.h"

#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "berth/base/text.h"
#include "berth/cli/past.h"
#include "berth/cli/serve.h"
#include "berth/cli/simulate.h"
#include "berth/command/command.h"
#include "berth/command/environment.h"
#include "berth/history/usage_letter.h"
#include "berth/http/settings.h"
#include "berth/net/client.h"
#include "berth/sys/file.h"
#include "berth/timeline/model/timeline.h"
#include "berth/usage/usage.h"
#include "berth/view/hosts_reader.h"
#include "berth/view/usage.h"

namespace berth::serve {
namespace {

constexpr std::chrono::seconds kHistoryPatience{30};  // longer than an agent itself waits for its disk
constexpr std::size_t kLongestHistory = std::size_t{16} << 20U;
constexpr std::string_view kServiceSocket = "/run/berth-serve/agent.sock";

std::string own_agent() {
  struct stat status{};
  if (::stat(kServiceSocket.data(), &status) == 0 && S_ISSOCK(status.st_mode))
    return fmt::format("unix:{}", kServiceSocket);
  return fmt::format("http://{}", http::kDefaultAddress);
}

std::string reading(const std::string& path) {
  return fmt::format("reading {}", path);
}

}  // namespace

Result<AskedHistory> ask_agent(cli::PeerOptions options, const std::string& target) {
  if (options.url.empty()) options.url = own_agent();
  BERTH_LET(const auto peer, cli::peer_of(options));
  const auto response = net::get_once(peer, target, kHistoryPatience, kLongestHistory);
  std::string asking = fmt::format("asking {}", url_of(peer));
  if (!response) {
    return fail(ErrorCode::failure, "{}: {}, or read the file of an agent that does not run with --file FILE",
                asking, response.error().message);
  }
  BERTH_LET(auto text, net::document_in(*response, asking));
  return AskedHistory{std::move(text), std::move(asking)};
}

Result<history::HistoryFile> open_history(const std::string& path) {
  struct stat status{};
  // If the file is missing, opening it would create it.
  if (::stat(path.c_str(), &status) != 0) return sys::fail_errno(reading(path));
  auto file = history::HistoryFile::open(path);
  if (file) return std::move(*file);
  if (file.error().kind == history::DatabaseError::Kind::taken) {
    return fail(ErrorCode::failure, "{}: an agent has it; ask that one, without --file", reading(path));
  }
  return std::unexpected(fault_of_history(path, file.error()));
}

Error fault_of_history(const std::string& path, const history::DatabaseError& fault) {
  return {ErrorCode::failure, fmt::format("{}: {}", reading(path), fault.message)};
}

Result<command::Output> past_command(std::span<char*> words) {
  std::string since = "6h";
  cli::PeerOptions asking;
  command::Syntax syntax;
  syntax.text("Options", "since", "TIME", "from so long ago", since);
  syntax.text("Options", "url", "URL", "ask this agent", asking.url);
  cli::add_peer_options(syntax, "Options", asking);
  BERTH_DO(command::parse(syntax, "berth timeline", words));
  BERTH_LET(auto answer,
            ask_agent(asking, fmt::format("/api/v1/past-leases?since={}&points={}", since, kTimelinePoints)));
  return command::Output{.out = std::move(answer.document)};
}

namespace {

Result<RecordedLeases> asked_leases(const cli::PeerOptions& options, const LeasesQuestion& question) {
  BERTH_LET(const auto answer,
            ask_agent(options, fmt::format("/api/v1/past-leases?since={}s", question.since_s)));
  auto recorded = view::recorded_leases_from_json(answer.document);
  if (!recorded) return std::unexpected(context(recorded.error(), answer.asking));
  return recorded;
}

Result<RecordedLeases> read_leases(const std::string& path, const LeasesQuestion& question) {
  BERTH_LET(auto file, open_history(path));
  auto recorded = file.recorded_leases(question, std::time(nullptr));
  if (!recorded) return std::unexpected(fault_of_history(path, recorded.error()));
  return *std::move(recorded);
}

std::string_view most_of(const std::vector<LeftOut>& left_out) {
  return std::ranges::max(left_out, {}, &LeftOut::leases).because;
}

}  // namespace

Result<command::Output> simulate_command(std::span<char*> words) {
  cli::SimulateOptions options;
  const command::Syntax syntax = cli::simulate_syntax(options);
  if (const auto parsed = command::parse(syntax, "berth simulate", words); !parsed)
    return std::unexpected(parsed.error());
  if (!options.file.empty() && !options.asking.url.empty())
    return fail(ErrorCode::usage, "--file and --url contradict each other: give one of them");
  QuestionParameters parameters;
  if (!options.since.empty()) parameters["since"] = options.since;
  BERTH_LET(const auto question, leases_question(parameters));
  BERTH_LET(const auto recorded, options.file.empty() ? asked_leases(options.asking, question)
                                                      : read_leases(options.file, question));
  const RecordedWorkload made = recorded_workload(recorded, options.devices);
  if (made.workload.jobs.empty()) {
    return fail(ErrorCode::failure,
                made.left_out.empty()
                    ? std::string("no lease is recorded of this time; ask for a longer one with --since")
                    : fmt::format("no lease of this time can be replayed; of most of them: {}",
                                  most_of(made.left_out)));
  }
  BERTH_LET(auto output, cli::simulated(options, made.workload, &made));
  if (recorded.is_cut)
    output.err +=
        fmt::format("berth: of this time more leases are recorded than are read: these are the newest {}\n",
                    recorded.leases.size());
  return output;
}

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
