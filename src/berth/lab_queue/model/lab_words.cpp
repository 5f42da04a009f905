#include "berth/lab_queue/model/lab_words.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "berth/base/printable.h"
#include "berth/base/record.h"
#include "berth/base/text_match.h"
#include "berth/request/lab_host.h"

namespace berth::lab_agent {
namespace {

constexpr std::array<std::pair<std::string_view, OfHost::Word>, 5> kOfHost{{
    {"here", OfHost::Word::here},
    {"joined", OfHost::Word::joined},
    {"closed", OfHost::Word::closed},
    {"left", OfHost::Word::left},
    {"start", OfHost::Word::start},
}};

std::vector<std::string> split_words(std::string_view text, char between) {
  std::vector<std::string> words;
  for (const std::string_view part : parts_at(text, between))
    if (!part.empty()) words.emplace_back(part);
  return words;
}

bool is_mark(std::string_view text) {
  return text.size() >= 16 && text.size() <= 64 && std::ranges::all_of(text, [](char each) {
           return (each >= '0' && each <= '9') || (each >= 'a' && each <= 'f');
         });
}

Words wanted_entry(const std::vector<std::string>& words) {
  const auto lane = number_from_text<unsigned>(words[2]);
  // An older Berth does not say how many GPUs it wants. If there are lanes, its lane says so.
  const auto gpus = number_from_text<unsigned>(words.size() == 4 ? words[2] : words[4]);
  if (!lane || !gpus) return Nonsense{"this is no number of GPUs"};
  std::vector<std::string> hosts;
  for (std::string& each : split_words(words[3], ','))
    if (std::ranges::find(hosts, each) == hosts.end()) hosts.push_back(std::move(each));
  if (hosts.size() > kMostHostsOfRequest)
    return Nonsense{fmt::format("a request may name {} hosts at most; name fewer with --hosts or --host",
                                kMostHostsOfRequest)};
  const auto is_name = [](const std::string& each) { return check_host_name(each).has_value(); };
  if (hosts.empty() || !std::ranges::all_of(hosts, is_name)) return Nonsense{"these are no hosts"};
  const bool runs = words.size() == 6 && std::ranges::find(hosts, words[5]) != hosts.end();
  return WantsEntry{words[1], *lane, std::max(*gpus, 1U), std::move(hosts), runs ? words[5] : ""};
}

}  // namespace

Words words_in(std::string_view line) {
  const std::vector<std::string> words = split_words(line, ' ');
  const std::string word = words.empty() ? "" : words[0];
  const std::string name = words.size() > 1 ? words[1] : "";
  if (word == "status") return WantsStatus{};
  if (word == "line")
    if (const auto from = number_from_text<std::size_t>(name)) return WantsQueue{*from};
  if (word == "wait" && words.size() >= 4 && words.size() <= 6 && is_mark(name)) return wanted_entry(words);
  const auto of_host = std::ranges::find(kOfHost, word, &std::pair<std::string_view, OfHost::Word>::first);
  if (of_host != kOfHost.end()) return OfHost{of_host->second, name};
  return Nonsense{std::string(kUnknownWord)};
}

std::string shown_origin(const LabStanding& standing) {
  return standing.origin.substr(0, kLongestOrigin);
}

std::vector<std::string> status_answer(std::string_view url, std::string_view name, std::string_view fault,
                                       const lab_queue::LabCopy& store) {
  std::vector<std::string> lines{fmt::format("store {}", url), fmt::format("name {}", name)};
  if (!fault.empty()) lines.push_back("silent " + printable(fault));
  for (const auto& [home, version] : store.alive())
    lines.push_back(fmt::format("alive {} {}", printable(home), printable(version)));
  lines.push_back(fmt::format("waiting {}", store.queue().size()));
  lines.emplace_back("end");
  return lines;
}

std::vector<std::string> queue_answer(const LabOrder& order, std::size_t from) {
  const std::size_t begin = std::min(from, order.standing.size());
  const std::size_t end = std::min(order.standing.size(), begin + kMostStanding);
  std::vector<std::string> lines;
  for (std::size_t i = begin; i < end; ++i) {
    const LabStanding& each = order.standing[i];
    lines.push_back(fmt::format("stands {} {}", each.position, printable(shown_origin(each))));
  }
  lines.push_back(fmt::format("outside {}", order.outside));
  if (end < order.standing.size()) lines.push_back(fmt::format("more {}", end));
  return lines;
}

}  // namespace berth::lab_agent
