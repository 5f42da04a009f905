#include "berth/lab_queue/model/lab_limits.h"

#include <algorithm>
#include <variant>

namespace berth::lab_agent {
namespace {

/// nullopt: it is not known which apply, or none do.
std::optional<UserLimits> limits_now(const QueueEntry& entry, const Settings& settings, const Given& given) {
  const auto* of = std::get_if<LimitsOf>(&entry.limits);
  if (of == nullptr) return std::nullopt;
  return limits_of(settings.limits, of->asker, given.hour);
}

}  // namespace

void limit(AgentDeeds& deeds, ClientId id) {
  QueueEntry* entry = deeds.entry_of(id);
  if (entry == nullptr || std::holds_alternative<Runs>(entry->stage)) return;
  const auto limits = limits_now(*entry, deeds.state.settings, deeds.given);
  if (!limits) return;
  if (const auto why = never_in_lab(*limits, entry->kept.gpus)) return deeds.dismiss(id, *why, true);
  const auto& most = limits->now.lab_gpus;
  entry->kept.most = most ? std::optional(static_cast<unsigned>(most->most)) : std::nullopt;
}

std::optional<std::string> why_over(const QueueEntry& entry, const Settings& settings, const Given& given,
                                    const GpusByUser& has, std::uint64_t taken) {
  const auto limits = limits_now(entry, settings, given);
  if (!limits) return std::nullopt;
  const auto found = has.in_all.find(entry.kept.uid);
  const std::uint64_t held = found == has.in_all.end() ? 0 : found->second;
  return over_lab_limit(*limits, entry.kept.gpus, held, taken - std::min(taken, held));
}

}  // namespace berth::lab_agent
