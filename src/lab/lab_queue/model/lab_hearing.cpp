#include <algorithm>
#include <array>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "berth/base/record.h"
#include "berth/base/text_match.h"
#include "berth/lab_queue/model/agent_deeds.h"
#include "berth/machines/lab_standing.h"
#include "berth/request/lab_host.h"

// The lines that a client says (docs/store-protocol.md).
namespace berth::lab_agent {
namespace {

/// Why a connection ends that says what this version does not know.
constexpr std::string_view kUnknownWord = "it was asked what this version does not know";
constexpr std::array<std::string_view, 5> kOfHost{"here", "joined", "closed", "left", "start"};

bool is_mark(std::string_view text) {
  return text.size() >= 16 && text.size() <= 64 && std::ranges::all_of(text, [](char each) {
           return (each >= '0' && each <= '9') || (each >= 'a' && each <= 'f');
         });
}

/// A rule for each kind of line.
class HearingRules {
 public:
  HearingRules(AgentDeeds& deeds, ClientId id) : deeds_(deeds), id_(id), one_(*deeds.client(id)) {}

  void hear(std::string_view line) {
    const std::vector<std::string_view> words = words_at(line);
    const std::string_view word = words.empty() ? "" : words[0];
    const std::string name(words.size() > 1 ? words[1] : "");
    const auto from = number_from_text<std::size_t>(name);
    if (word == "status")
      one_.wants_status = true;
    else if (word == "line" && from)
      one_.wants_queue = *from;
    else if (word == "wait" && words.size() >= 5 && words.size() <= 6 && is_mark(name))
      take_in(words);
    else if (std::ranges::find(kOfHost, word) != kOfHost.end())
      hear_of_host(word, name);
    else
      dismiss(kUnknownWord);
  }

 private:
  /// It wants an entry: `wait MARK LANE HOST,HOST GPUS HOST`.
  void take_in(const std::vector<std::string_view>& words) {
    const auto lane = number_from_text<unsigned>(words[2]);
    const auto gpus = number_from_text<unsigned>(words[4]);
    if (!lane || !gpus) return dismiss("this is no number of GPUs");
    const Settings& settings = deeds_.state.settings;
    QueueEntry entry{.kept = {.id = id_of(settings.name, words[1]),
                              .home = settings.name,
                              .uid = one_.uid,
                              .lane = *lane,
                              .gpus = std::max(*gpus, 1U),
                              .origin = origin_of(settings.machine, one_.pid),
                              .hosts = {},
                              .joined = {}}};
    for (const std::string_view host : words_at(words[3], ','))
      if (entry.hosts.size() <= kMostHostsOfRequest && entry.host(host) == nullptr)
        entry.hosts.push_back({.name = std::string(host),
                               .is_outside = !settings.hosts.empty() && !settings.hosts.contains(host)});
    if (entry.hosts.size() > kMostHostsOfRequest)
      return dismiss(fmt::format("a request may name {} hosts at most; name fewer with --hosts or --host",
                                 kMostHostsOfRequest));
    if (words[3].size() > kLongestHostsOfRequest)
      return dismiss(
          fmt::format("the names of the hosts of a request may have {} bytes at most in all; name "
                      "fewer with --hosts or --host",
                      kLongestHostsOfRequest));
    const auto is_name = [](const NamedHost& each) { return check_host_name(each.name).has_value(); };
    if (entry.hosts.empty() || !std::ranges::all_of(entry.hosts, is_name))
      return dismiss("these are no hosts");
    if (one_.entry) return dismiss(kUnknownWord);
    const auto has_it = [&](const auto& each) {
      return each.second.entry && each.second.entry->kept.id == entry.kept.id;
    };
    if (std::ranges::any_of(deeds_.state.clients, has_it))
      return dismiss("this request has its entry on another connection");
    // Its command runs there, since an earlier agent said yes.
    if (words.size() == 6 && entry.host(words[5]) != nullptr) entry.stage = Runs{std::string(words[5])};
    if (has_lab_limit(settings.limits)) {
      entry.limits = LimitsAsked{deeds_.given.now};
      deeds_.act(AskLimits{id_, one_.uid});
    }
    deeds_.state.removals.erase(entry.kept.id);
    one_.entry = std::move(entry);
    if (!deeds_.state.fault.empty()) tell_silence(deeds_, id_, *one_.entry);
  }

  void hear_of_host(std::string_view word, const std::string& name) {
    NamedHost* host = one_.entry ? one_.entry->host(name) : nullptr;
    if (host == nullptr) return dismiss(kUnknownWord);
    if (std::holds_alternative<Left>(host->how)) {
      // Its answers to what it was told of the host may come after its word that it has left.
      if (word == "start") dismiss(kUnknownWord);
      return;
    }
    auto* opened = std::get_if<Opened>(&host->how);
    if (word == "here") {
      if (opened != nullptr && opened->reach != Opened::Reach::stands) opened->reach = Opened::Reach::answers;
    } else if (word == "joined") {
      // It may have joined while an earlier agent was here.
      if (opened == nullptr) opened = &host->how.emplace<Opened>(Opened{.since = deeds_.given.now});
      opened->reach = Opened::Reach::stands;
    } else if (word == "closed") {
      one_.entry->lets_go(*host, Shut{});
    } else if (word == "left") {
      one_.entry->lets_go(*host, Left{});
    } else {
      ask_to_start(*one_.entry, name);
    }
  }

  void ask_to_start(QueueEntry& entry, const std::string& host) {
    auto* runs = std::get_if<Runs>(&entry.stage);
    if (runs == nullptr) return (void)(entry.stage = Asks{host});
    if (runs->host != host) return dismiss("this request was started already");
    runs->asks_again = true;
  }

  void dismiss(std::string_view why) { deeds_.dismiss(id_, why, true); }

  AgentDeeds& deeds_;
  ClientId id_;
  Client& one_;
};

}  // namespace

void hear(AgentDeeds& deeds, ClientId id, std::string_view line) {
  HearingRules(deeds, id).hear(line);
}

}  // namespace berth::lab_agent
