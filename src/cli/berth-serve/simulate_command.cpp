#include "simulate_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <string_view>
#include <vector>

#include "asked_history.h"
#include "berth/cli/simulate_options.h"
#include "berth/usage/history_question.h"
#include "berth/view/past_leases.h"

namespace berth::serve {
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

}  // namespace berth::serve
