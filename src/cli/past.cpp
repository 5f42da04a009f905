#include "berth/cli/past.h"

#include <unistd.h>

#include <chrono>
#include <ctime>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "berth/answers/answers.h"
#include "berth/base/record.h"
#include "berth/base/text.h"
#include "berth/command/command.h"
#include "berth/command/environment.h"
#include "berth/command/shared_options.h"
#include "berth/hosts/ask_hosts.h"
#include "berth/hosts/lab_hosts.h"
#include "berth/timeline/picture.h"
#include "berth/usage/usage.h"
#include "berth/view/usage.h"

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

namespace {

constexpr std::string_view kTimelineAbout =
    "Answers the first questions in words: is a GPU free, and when is the next; where are you; who leaves "
    "one idle; what waits. Then it shows the hours, a line for each GPU: to the left of now who had it and "
    "how busy it was, to the right until when it is leased, and for whom it is reserved then. Below it stand "
    "the requests that wait, from about when they start.\n"
    "\n"
    "The past is there if an agent keeps a history on this machine (berth serve), or with --url another "
    "agent of this machine. What is to come is told by the time limits of leases (--time): without a limit "
    "nobody knows when a lease ends.\n"
    "\n"
    "    berth timeline\n"
    "    berth timeline --hours 24";

constexpr std::int64_t kMostHours = 72;

class TimelineCommand : public command::Command {
 public:
  void syntax(command::Syntax& syntax) override {
    constexpr std::string_view kPast = "The past";
    syntax.about = kTimelineAbout;
    syntax.option("Options", "hours", "N", "so many hours each way: 1 to 72 (default 6)",
                  [this](std::string_view value) -> Result<void> {
                    const auto hours = number_from_text<std::int64_t>(value);
                    if (!hours || *hours < 1 || *hours > kMostHours)
                      return fail(ErrorCode::usage, "must be a number from 1 to 72");
                    hours_ = *hours;
                    return {};
                  });
    syntax.flag("Options", "ascii", "with plain characters alone", ascii_);
    add_watch_options(syntax, watch_, "as JSON (docs/schema/timeline.json)");
    syntax.add(command::source_option(options_.source));
    syntax.text(kPast, "url", "URL", "ask this agent: http://127.0.0.1:8421", asking_.url);
    add_peer_options(syntax, kPast, asking_);
  }

  Result<command::Output> run(command::Environment& environment, const command::Words&) override {
    options_.mask = MaskUse::ignore;
    return show(watch_, [&](view::Layout layout) { return look(environment, layout); });
  }

 private:
  Result<command::Output> look(command::Environment& environment, view::Layout layout) {
    BERTH_LET(auto domain, command::find_domain());
    BERTH_LET(const auto session, open_session_at(machine_around(std::move(domain)), environment, options_));
    BERTH_LET(auto world, session.look(options_, readings_for_listing()));
    command::Output output;
    output.err = command::as_lines(leasing::notes_on(world));
    idle_.look(world.ledger, world.facts);
    const view::Style style = command::Environment::style_of(STDOUT_FILENO);
    BERTH_LET(const HostReport report, answers::host_report(std::move(world), idle_, style));
    const std::int64_t each_way_s = hours_ * 3600;
    const auto past = known_past(asking_, each_way_s);
    if (!past && !asking_.url.empty()) output.err += command::as_lines({past.error().message});
    const Timeline line = timeline_of(report, past ? &*past : nullptr,
                                      {.now_s = style.now_s, .back_s = each_way_s, .ahead_s = each_way_s});
    output.out =
        watch_.json ? timeline::to_json(line, layout) : timeline::text_of(line, ::geteuid(), style, ascii_);
    return output;
  }

  command::RequestOptions options_;
  command::WatchOptions watch_;
  PeerOptions asking_;
  std::int64_t hours_ = 6;
  bool ascii_ = false;
  IdleTimes idle_;
};

}  // namespace

BERTH_COMMAND(make_timeline, TimelineCommand);

// The row of `berth usage` in the table of commands. The program berth-serve asks the agent, since
// it has an HTTP client and SQLite.

namespace {

constexpr std::string_view kUsageAbout =
    "Shows a line for each user, for each GPU, or for the jobs of each name: the number of leases, their "
    "GPU-hours, and the hours in which a process of the lease computed on the GPU. Asks the agent of this "
    "machine, which counts them (berth serve); with --url another agent or a hub. With --file it reads the "
    "history of an agent that no longer runs. Hours begin with full ones: --since 1h at 14:20 is from 13:00 "
    "on.\n"
    "\n"
    "    berth usage --since 30d\n"
    "    berth usage --since 30d --by job";

class Usage : public command::Command {
 public:
  void syntax(command::Syntax& syntax) override { syntax = usage_syntax(options_); }

  Result<command::Output> run(command::Environment& environment, const command::Words&) override {
    BERTH_DO(settle(options_.anywhere));
    if (options_.anywhere.anywhere) return usage_of_hosts();
    return std::unexpected(command::become_berth_serve(command::kUsageWord, environment.words().subspan(1)));
  }

 private:
  Result<command::Output> usage_of_hosts() const {
    if (options_.letter)
      return fail(ErrorCode::usage,
                  "--letter is about one machine: without --anywhere, or with --url for its agent");
    if (!options_.asking.url.empty() || !options_.file.empty())
      return fail(ErrorCode::usage, "--anywhere excludes --url, --hub and --file");
    UsageBy by{};
    if (!read_value(options_.by, by)) return fail(ErrorCode::usage, "--by is user, device or job");
    BERTH_LET(const auto meant, hosts::hosts_meant(options_.anywhere));
    const auto documents =
        hosts::documents_of(meant, {"usage", "--json", "--since=" + options_.since, "--by=" + options_.by});
    std::vector<std::pair<std::string, berth::Usage>> told;
    std::vector<std::string> missing;
    command::Output output;
    for (std::size_t i = 0; i < meant.size(); ++i) {
      auto usage = documents[i] ? view::usage_from_json(*documents[i])
                                : Result<berth::Usage>(std::unexpected(documents[i].error()));
      if (usage && usage->by == by) {
        told.emplace_back(meant[i].name, *std::move(usage));
        continue;
      }
      missing.push_back(meant[i].name);
      output.err += command::as_lines({fmt::format(
          "{}: {}", meant[i].name,
          usage ? "it does not answer what it was asked" : printable_lines(usage.error().message))});
    }
    const berth::Usage usage = total_usage(by, told, std::move(missing), UsersAre::of_hosts);
    if (told.empty()) {
      output.err += command::as_lines({std::string(view::kNoHostTells)});
      output.status = outcome_of(ErrorCode::failure).exit_status;
      return output;
    }
    output.out = options_.json ? view::usage_json(usage, view::Layout::lines)
                               : view::usage_table(usage, command::Environment::style_of(1));
    return output;
  }

  UsageOptions options_;
};

}  // namespace

command::Syntax usage_syntax(UsageOptions& options) {
  command::Syntax syntax;
  syntax.about = kUsageAbout;
  syntax.option("Options", "since", "TIME", "from so long ago: 24h, 7d (default), 30d",
                [&options](std::string_view value) -> Result<void> {
                  BERTH_DO(seconds_from_text(value));
                  options.since = value;
                  return {};
                });
  syntax.option("Options", "by", "WHAT", "user (default), device, or job: the name of a job",
                command::text_into(options.by), 0, {"user", "device", "job"});
  syntax.flag("Options", "json", "as JSON (docs/schema/usage.json)", options.json);
  syntax.flag("Options", "letter",
              "as a page of text for a mail, of one machine: hours leased and idle, waits, memory, sick GPUs",
              options.letter);
  syntax.text("Options", "url", "URL", "ask this agent or hub: https://node01:8420", options.asking.url);
  syntax.text("Options", "hub", "URL", "the same", options.asking.url);
  syntax.text("Options", "file", "FILE", "read this history; no agent may have it", options.file);
  add_peer_options(syntax, "Options", options.asking);
  add_anywhere_options(syntax, options.anywhere,
                       "the agents of all hosts of the lab, each asked through ssh");
  return syntax;
}

BERTH_COMMAND(make_usage, Usage);

}  // namespace berth::cli
