#include "berth/screen/model/top_edit.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "berth/job/edit_plan.h"
#include "berth/job/task_standing.h"

namespace berth::view {
namespace {

struct Change {
  std::string_view option;
  std::string_view done;  ///< to the job {}
};
constexpr Change kHold{"--hold", "hold job {}"};
constexpr Change kLetGo{"--no-hold", "let job {} go"};
constexpr Change kFirst{"--first", "put job {} first"};
constexpr Change kLast{"--last", "put job {} last"};

/// The job of the line, which may be that of its request in the queue. nullopt: it is about none of
/// the reader's.
std::optional<std::uint64_t> number_of_job(const TopSight& sight, const TopItem& item) {
  if (item.section == TopSection::jobs) {
    const auto id = task_id_from_text(item.name);
    return id ? std::optional(id->job) : std::nullopt;
  }
  if (item.section != TopSection::queue || sight.is_lab || sight.hosts.empty()) return std::nullopt;
  const auto& report = sight.hosts.front()->report;
  const auto id = ticket_id_from_text(item.name);
  const Ticket* ticket = report && id ? find_ticket(report->ledger, *id, TicketPhase::waiting) : nullptr;
  const auto note =
      ticket != nullptr && ticket->uid == sight.uid ? task_note_from_text(ticket->note) : std::nullopt;
  return note ? std::optional(note->task.job) : std::nullopt;
}

bool one_waits(const ListedTask& task) {
  return task.counts ? task.counts->waiting != 0 : task.standing.phase == TaskPhase::waiting;
}

const Change& change_of(char32_t key, const TaskStanding& standing) {
  if (key == 'f') return kFirst;
  if (key == 'l') return kLast;
  return standing.on_hold ? kLetGo : kHold;
}

}  // namespace

TopDeed edit_job(TopView& view, const TopSight& sight, char32_t key) {
  const auto number = number_of_job(sight, view.at);
  const auto job = std::ranges::find_if(
      sight.jobs, [&](const ListedTask& task) { return number && task.id.job == *number; });
  if (job == sight.jobs.end()) {
    view.said = "the cursor is on no waiting job of yours";
    return {};
  }
  if (!one_waits(*job)) {
    view.said = not_editable(*number, {job->standing}).message;
    return {};
  }
  return {TopDeed::Kind::perform,
          {"edit", std::to_string(*number), std::string(change_of(key, job->standing).option)}};
}

void hear(TopView& view, const TopAnswer& answer) {
  view.said = answer.said;
  const auto& words = answer.words;
  // A reader who is typing would answer by a letter of it.
  const bool costs = words.size() == 3 && words.front() == "edit" && answer.said.ends_with(kSayYes);
  if (!costs || view.typing || view.question) return;
  constexpr std::array kChanges{kHold, kLetGo, kFirst, kLast};
  const auto change = std::ranges::find(kChanges, std::string_view(words.back()), &Change::option);
  if (change == kChanges.end()) return;
  std::vector<std::string> anyway = words;
  anyway.emplace_back("--yes");
  view.question =
      TopQuestion{std::move(anyway), fmt::format("{}, and give up its place in the queue",
                                                 fmt::format(fmt::runtime(change->done), words[1]))};
}

}  // namespace berth::view
