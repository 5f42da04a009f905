#include "berth/lab_queue/model/lab_hearing.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "berth/lab_queue/model/lab_telling.h"
#include "berth/lab_queue/model/lab_words.h"

namespace berth::lab_agent {
namespace {

/// A rule for each kind of words.
class HearingRules {
 public:
  HearingRules(AgentDeeds& deeds, ClientId id) : deeds_(deeds), id_(id), one_(*deeds.client(id)) {}

  void hear(const WantsStatus&) { one_.wants_status = true; }
  void hear(const WantsQueue& wants) { one_.wants_queue = wants.from; }
  void hear(const Nonsense& nonsense) { dismiss(nonsense.why); }

  void hear(const WantsEntry& wants) {
    const Settings& settings = deeds_.state.settings;
    if (one_.entry) return dismiss(kUnknownWord);
    const std::string name = id_of(settings.name, wants.mark);
    const auto has_it = [&](const auto& each) {
      return each.second.entry && each.second.entry->kept.id == name;
    };
    if (std::ranges::any_of(deeds_.state.clients, has_it))
      return dismiss("this request has its entry on another connection");
    QueueEntry entry{.kept = {.id = name,
                              .home = settings.name,
                              .uid = one_.uid,
                              .lane = wants.lane,
                              .gpus = wants.gpus,
                              .origin = origin_of(settings.machine, one_.pid),
                              .hosts = {},
                              .joined = {}}};
    for (const std::string& host : wants.hosts) entry.hosts.push_back({host});
    if (!wants.runs_on.empty()) entry.stage = Runs{wants.runs_on};
    if (has_lab_limit(settings.limits)) {
      entry.limits = LimitsAsked{deeds_.given.now};
      deeds_.act(AskLimits{id_, one_.uid});
    }
    one_.entry = std::move(entry);
    deeds_.state.removals.erase(name);
    if (!deeds_.state.fault.empty()) tell_silence(deeds_, id_, *one_.entry);
  }

  void hear(const OfHost& said) {
    NamedHost* host = one_.entry ? one_.entry->host(said.host) : nullptr;
    if (host == nullptr) return dismiss(kUnknownWord);
    if (std::holds_alternative<Left>(host->how)) {
      // Its answers to what it was told of the host may come after its word that it has left.
      if (said.word == OfHost::Word::start) dismiss(kUnknownWord);
      return;
    }
    auto* opened = std::get_if<Opened>(&host->how);
    switch (said.word) {
      case OfHost::Word::here:
        if (opened != nullptr && opened->reach != Opened::Reach::stands)
          opened->reach = Opened::Reach::answers;
        return;
      case OfHost::Word::joined:
        // It may have joined while an earlier agent was here.
        if (opened == nullptr) opened = &host->how.emplace<Opened>(Opened{.since = deeds_.given.now});
        opened->reach = Opened::Reach::stands;
        return;
      case OfHost::Word::closed:
        return one_.entry->lets_go(*host, Shut{});
      case OfHost::Word::left:
        return one_.entry->lets_go(*host, Left{});
      case OfHost::Word::start:
        return ask_to_start(*one_.entry, said.host);
    }
  }

 private:
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
  std::visit([&](const auto& words) { HearingRules(deeds, id).hear(words); }, words_in(line));
}

}  // namespace berth::lab_agent
