#include "berth/screen/model/top_sections.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "berth/base/text.h"
#include "berth/view/hosts_table.h"
#include "berth/view/verdict_text.h"

namespace berth::view {
namespace {

bool is_mine(const TopSight& sight, std::uint32_t uid, std::string_view user) {
  return sight.is_lab ? !user.empty() && user == sight.user : uid == sight.uid;
}

std::size_t column_of(const std::vector<Column>& columns, std::string_view title) {
  return static_cast<std::size_t>(std::ranges::find(columns, title, &Column::title) - columns.begin());
}

std::size_t bar_width(std::size_t columns) {
  return columns < 60 ? 0 : columns < 100 ? 4 : columns < 160 ? 10 : 20;
}

std::string bar(double share, std::size_t width, bool ascii) {
  constexpr std::array<std::string_view, 8> kEighths{"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const auto eighths =
      static_cast<std::size_t>(std::clamp(share, 0.0, 1.0) * static_cast<double>(width * 8) + 0.5);
  std::string text;
  std::size_t used = 0;
  for (; used < eighths / 8; ++used) text += ascii ? "#" : "█";
  if (!ascii && eighths % 8 != 0) {
    text += kEighths[eighths % 8];
    ++used;
  }
  for (; used < width; ++used) text += ascii ? "." : "░";
  return text;
}

/// `tone`: of the device's state.
void put_bar(Cell& cell, double share, Tone tone, std::size_t width, bool ascii) {
  if (share < 0) return;
  cell.tone = tone;
  // As wide as "100%", so that the bars of all rows begin in one column.
  if (width > 0) cell.text = fmt::format("{} {:>4}", bar(share, width, ascii), cell.text);
}

/// Where there is too little room, the columns of the GPUs go in this order; of the others, some do
/// that a listing would rather be too wide for.
void make_narrow(TopSection section, std::vector<Column>& columns, std::size_t columns_shown) {
  constexpr std::array<std::pair<std::string_view, unsigned>, 7> kOfDevices{
      {{"TREND", 1}, {"PROCS", 2}, {"POWER", 3}, {"TEMP", 4}, {"NAME", 5}, {"MEMORY (GiB)", 6}, {"UTIL", 7}}};
  constexpr std::array<std::pair<std::string_view, unsigned>, 9> kOfOthers{{{"NAME", 10},
                                                                            {"EXIT", 10},
                                                                            {"POS", 11},
                                                                            {"PID", 12},
                                                                            {"WAITED", 13},
                                                                            {"ID", 14},
                                                                            {"LEASE", 15},
                                                                            {"LAB", 16},
                                                                            {"END", 17}}};
  for (Column& column : columns) {
    const auto take = [&](const auto& orders, bool also) {
      for (const auto& [title, order] : orders) {
        if (column.title == title && (also || column.drop_order == 0)) column.drop_order = order;
      }
    };
    if (section == TopSection::devices)
      take(kOfDevices, true);
    else
      take(kOfOthers, false);
    if (column.title == "STATE") column.least = columns_shown < 60 ? 12 : 24;
    if (column.title == "COMMAND" && columns_shown < 60) column.least = 8;
    if (column.title == "REASON" && columns_shown >= 60) column.least = 24;
  }
}

class TopSections {
 public:
  TopSections(const TopSight& sight, const ScreenSize& size, const Style& style)
      : sight_(sight), size_(size), style_(style) {}

  std::vector<FilledSection> sections() {
    bool some_end = false;
    bool foresees = false;
    for (const auto& host : sight_.hosts) {
      if (!host->report) continue;
      some_end |= has_some_end(host->report->ledger);
      foresees |= any_start_is_known(host->report->waiters);
    }
    for (const TopSectionWords& words : kTopSections) sections_.push_back({&words, {}, {}});
    at(TopSection::devices).columns = device_columns();
    at(TopSection::leases).columns = lease_columns(some_end);
    at(TopSection::queue).columns =
        sight_.is_lab ? lab_waiter_columns(foresees, knows_lab_queue()) : waiter_columns(foresees);
    at(TopSection::jobs).columns = job_columns();
    at(TopSection::processes).columns = process_columns();
    for (const auto& host : sight_.hosts) {
      if (host->report) add(*host, *host->report, some_end);
    }
    add_waiters(foresees);
    add_jobs();
    finish_columns();
    return std::move(sections_);
  }

 private:
  FilledSection& at(TopSection section) { return sections_[static_cast<std::size_t>(section)]; }

  TopEntry& enter(TopSection section, const Host& host, std::string name, Row row) {
    TopEntry& entry = at(section).entries.emplace_back();
    entry.item = {section, host.name, std::move(name)};
    entry.row = std::move(row);
    return entry;
  }

  bool knows_lab_queue() const { return !sight_.order.standing.empty(); }

  void add(const Host& host, const HostReport& report, bool some_end) {
    const Listing listing = listing_of(sight_, report);
    for (const Device& device : report.facts.snapshot.devices) add_device(host, listing, device);
    const ShortNames names(report.ledger);
    for (const Ticket& ticket : report.ledger.tickets) {
      if (ticket.phase != TicketPhase::granted) continue;
      TopEntry& entry = enter(TopSection::leases, host, to_text(ticket.id),
                              lease_row(listing, names, ticket, some_end, style_));
      entry.mine = is_mine(sight_, ticket.uid, ticket.user);
      entry.user = ticket.user;
      entry.memory = static_cast<double>(ticket.promise_bytes);
      entry.end_s = said_end_at_s(ticket, report.facts.booted_at_s).value_or(0);
      entry.detail = fmt::format("lease {}: {}", names.of(ticket.id), noted_command(ticket));
    }
  }

  void add_waiters(bool foresees) {
    ShortNamesByLedger names_of;
    for (const LabWaiter& each : merged_queue(sight_.hosts, sight_.order)) {
      const Ledger& ledger = each.at->report->ledger;
      const ShortNames& names = names_of.of(ledger);
      Standing shown = *each.nearest;
      shown.reason = printable(shown.reason);
      const Ticket& ticket = shown.ticket;
      TopEntry& entry = enter(TopSection::queue, *each.at, to_text(ticket.id),
                              sight_.is_lab ? lab_waiter_row(each, names, foresees, knows_lab_queue(), style_)
                                            : waiter_row(shown, names, foresees, style_));
      entry.mine = is_mine(sight_, ticket.uid, ticket.user);
      entry.user = ticket.user;
      const bool is_one = each.hosts.size() == 1;
      entry.detail = fmt::format("{}: {}", names.of(ticket.id),
                                 is_one ? shown.reason : reason_of_several(each, shown.reason));
    }
  }

  static std::string reason_of_several(const LabWaiter& waiter, std::string_view reason) {
    std::string names;
    for (const Host* host : waiter.hosts)
      names += fmt::format("{}{}", names.empty() ? "" : ", ", printable(host->name));
    return fmt::format("{}: {}; waits on {}", printable(waiter.at->name), reason, names);
  }

  void add_device(const Host& host, const Listing& listing, const Device& device) {
    Row row = device_row(listing, device, style_);
    const std::vector<Column> columns = device_columns();
    const double memory = device.state == DeviceState::ok ? memory_share(device) : -1;
    const double load = device.utilization_percent && device.state == DeviceState::ok
                            ? *device.utilization_percent / 100.0
                            : -1;
    const std::size_t width = bar_width(size_.columns);
    const Tone tone = row.back().tone;
    if (const auto i = column_of(columns, "UTIL"); i < row.size())
      put_bar(row[i], load, tone, width, size_.ascii);
    if (const auto i = column_of(columns, "MEMORY (GiB)"); i < row.size())
      put_bar(row[i], memory, tone, width, size_.ascii);
    if (const std::size_t wide = trend_width(); wide > 0) {
      const auto found = sight_.trends.find({host.name, device.uuid});
      row.insert(
          row.end() - 1,
          {found == sight_.trends.end() ? "" : trend_text(found->second, wide, size_.ascii), Tone::faint});
    }
    const Verdict* verdict = verdict_on(device, listing.verdicts, listing.facts.snapshot);
    TopEntry& entry = enter(TopSection::devices, host, label(device), std::move(row));
    entry.load = load;
    entry.memory = memory;
    for (const Ticket* lease : leases_holding(device, listing.ledger)) {
      entry.mine |= is_mine(sight_, lease->uid, lease->user);
      entry.user = lease->user;
    }
    entry.detail =
        fmt::format("GPU {}: {}", label(device),
                    verdict == nullptr ? printable(device.name) : sentence(*verdict, device, style_));
    for (const Process& process : device.processes.value_or(std::vector<Process>{})) {
      TopEntry& one = enter(TopSection::processes, host, fmt::format("{} {}", label(device), process.pid),
                            process_row(listing, device, process, style_));
      one.mine = process.uid && is_mine(sight_, *process.uid, process.user);
      one.memory = static_cast<double>(process.used_bytes.value_or(0));
      one.user = process.user;
      one.detail = fmt::format("pid {}: {}", process.pid, printable(process.command));
    }
  }

  void add_jobs() {
    const Host here{};
    // The newest first: nobody scrolls past what ended last week.
    for (auto task = sight_.jobs.rbegin(); task != sight_.jobs.rend(); ++task) {
      TopEntry& entry = enter(TopSection::jobs, here, to_text(task->id), job_row(*task, style_));
      entry.mine = true;
      entry.detail = fmt::format("job {}: {}", to_text(task->id),
                                 task->standing.reason.empty()
                                     ? printable(fmt::format("{}", fmt::join(task->job.words, " ")))
                                     : printable(task->standing.reason));
    }
  }

  std::size_t trend_width() const { return size_.columns < 100 ? 0 : size_.columns < 160 ? 12 : 30; }

  void finish_columns() {
    for (FilledSection& section : sections_) {
      if (section.words->section == TopSection::devices && trend_width() > 0)
        section.columns.insert(section.columns.end() - 1, {"TREND", Align::left, 0, 1});
      make_narrow(section.words->section, section.columns, size_.columns);
      // The queue of a lab has its hosts already.
      const TopSection which = section.words->section;
      if (!sight_.is_lab || which == TopSection::jobs || which == TopSection::queue) continue;
      section.columns.insert(section.columns.begin(), {"HOST", Align::left, 8});
      for (TopEntry& entry : section.entries)
        entry.row.insert(entry.row.begin(), {printable(entry.item.host)});
    }
  }

  const TopSight& sight_;
  const ScreenSize& size_;
  const Style& style_;
  std::vector<FilledSection> sections_;
};

}  // namespace

Listing listing_of(const TopSight& sight, const HostReport& report) {
  return {report.facts, report.ledger, report.verdicts, report.assumed, report.idle, {}, sight.own};
}

std::vector<FilledSection> sections_of(const TopSight& sight, const ScreenSize& size, const Style& style) {
  return TopSections(sight, size, style).sections();
}

bool passes(const TopEntry& entry, std::string_view filter) {
  std::string text = entry.detail;
  for (const Cell& cell : entry.row) text += " " + cell.text;
  text = lowered(text);
  const std::string wanted = lowered(filter);
  for (std::size_t at = 0; at < wanted.size();) {
    const std::size_t end = std::min(wanted.find(' ', at), wanted.size());
    if (text.find(wanted.substr(at, end - at)) == std::string::npos) return false;
    at = end + 1;
  }
  return true;
}

void put_in_order(FilledSection& section, TopOrder order) {
  auto& entries = section.entries;
  const TopSection which = section.words->section;
  if (which == TopSection::queue || which == TopSection::jobs) return;
  switch (order) {
    case TopOrder::usual:
      break;
    case TopOrder::load:
      std::ranges::stable_sort(entries, std::greater{}, &TopEntry::load);
      return;
    case TopOrder::memory:
      std::ranges::stable_sort(entries, std::greater{}, &TopEntry::memory);
      return;
    case TopOrder::user:
      std::ranges::stable_sort(entries, {}, &TopEntry::user);
      return;
    case TopOrder::end:
      // Leases without an end come last.
      std::ranges::stable_sort(
          entries, {}, [](const TopEntry& entry) { return std::pair(entry.end_s == 0, entry.end_s); });
      return;
  }
  if (which != TopSection::devices) std::ranges::stable_partition(entries, &TopEntry::mine);
}

}  // namespace berth::view
