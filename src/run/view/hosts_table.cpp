#include "berth/view/hosts_table.h"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "berth/base/record.h"
#include "berth/base/text.h"
#include "berth/view/listing.h"
#include "berth/view/text.h"
#include "berth/view/verdict_text.h"

namespace berth::view {
namespace {

std::string short_model(std::string_view name) {
  name = without_maker(name);
  return name.empty() ? "unknown" : printable(name);
}

Totals totals_of_one(const std::shared_ptr<const Host>& host) {
  return totals_of({host});
}

/// "3 × A100-SXM4-80GB free on 2 hosts", a line a model that has some.
std::string free_lines(const Totals& totals, const Style& style) {
  std::string text;
  for (const ModelTotal& model : totals.models) {
    if (model.free == 0) continue;
    text += toned(fmt::format("{} × {} free on {}", model.free, short_model(model.name),
                              counted(model.hosts_with_free, "host")),
                  Tone::good, style) +
            "\n";
  }
  return text;
}

std::string hosts_summary(const Hosts& hosts, const Totals& totals, const Style& style) {
  const auto count = [&](const auto& is_so) { return std::ranges::count_if(hosts, is_so); };
  const auto bare = count([](const auto& host) { return host->bare.has_value(); });
  const auto down = count([](const auto& host) { return !host->is_up(); }) - bare;
  std::string text = counted(hosts.size(), "host");
  std::vector<std::string> without;
  if (down > 0) without.push_back(fmt::format("{} down", down));
  if (bare > 0) without.push_back(fmt::format("{} without Berth", bare));
  if (!without.empty()) text += fmt::format(" ({})", fmt::join(without, ", "));
  text += fmt::format(": {}, {} free", counted(totals.devices, "GPU"),
                      totals.free == 0 ? "none" : std::to_string(totals.free));
  std::size_t waiting = 0;
  for (const UserTotal& user : totals.users) waiting += user.waiting;
  if (waiting > 0) text += fmt::format(", {} waiting", waiting);
  return toned(wrapped(text, style.width, 0), Tone::strong, style) + "\n" + free_lines(totals, style) + "\n";
}

/// "8 H100 80GB HBM3", with a plus where there are several models.
std::string models_text(const Totals& totals) {
  std::string text;
  for (const ModelTotal& model : totals.models)
    text += fmt::format("{}{} {}", text.empty() ? "" : " + ", model.devices, short_model(model.name));
  return text.empty() ? std::string(kUnknown) : text;
}

/// The models on a host without Berth, as models_text writes them.
std::string bare_models_text(const std::vector<BareDevice>& devices) {
  std::map<std::string, std::size_t> models;
  for (const BareDevice& device : devices) ++models[short_model(device.name)];
  std::string text;
  for (const auto& [name, count] : models)
    text += fmt::format("{}{} {}", text.empty() ? "" : " + ", count, name);
  return text;
}

/// "2 of 4 in use"; of how many that is known.
std::string bare_use_text(const std::vector<BareDevice>& devices) {
  std::size_t known = 0;
  std::size_t used = 0;
  for (const BareDevice& device : devices) {
    const Reading<bool> in_use = is_in_use(device);
    known += in_use ? 1 : 0;
    used += in_use && *in_use ? 1 : 0;
  }
  return known == 0 ? std::string("use not known") : fmt::format("{} of {} in use", used, known);
}

/// "GPU 0 97 %, 30.3 of 40.0 GiB".
std::string bare_device_text(const BareDevice& device) {
  std::string text = fmt::format("GPU {}", device.index);
  if (!is_in_use(device)) return text + " not known";
  if (device.utilization_percent) text += fmt::format(" {} %", *device.utilization_percent);
  const auto gib = [](std::uint64_t bytes) { return static_cast<double>(bytes) / (1U << 30U); };
  if (device.memory_used_bytes && device.memory_total_bytes)
    text += fmt::format("{} {:.1f} of {:.1f} GiB", device.utilization_percent ? "," : "",
                        gib(*device.memory_used_bytes), gib(*device.memory_total_bytes));
  return text;
}

std::string bare_words(const std::vector<BareDevice>& devices) {
  constexpr std::size_t kMostTold = 8;
  std::string text = " It grants nothing. nvidia-smi there:";
  for (std::size_t i = 0; i < std::min(devices.size(), kMostTold); ++i)
    text += fmt::format("{} {}", i == 0 ? "" : ";", bare_device_text(devices[i]));
  if (devices.size() > kMostTold) text += fmt::format("; and {} more", devices.size() - kMostTold);
  return text;
}

/// Why a host is not as it should be; "" if it is.
std::string trouble_of(const Host& host) {
  if (host.bare) return printable(host.error) + "." + bare_words(*host.bare);
  if (!host.is_up()) return printable(host.error);
  return printable(host.report->facts.snapshot.stale_reason.value_or(""));
}

/// The users and how many they have: "alice 4, bob 1"; of a host that is down, since when.
Cell state_cell(const Host& host, const Totals& totals, const Style& style) {
  if (host.bare) return {"no Berth; " + bare_use_text(*host.bare), Tone::faint};
  if (!host.is_up()) {
    if (!host.seen_s) return {"down, never seen", Tone::bad};
    const auto age_s = std::max<std::int64_t>(0, style.now_s - *host.seen_s);
    return {"down for " + duration_for_people(age_s), Tone::bad};
  }
  if (host.report->facts.snapshot.stale_reason) return {"stale", Tone::bad};
  std::string text;
  for (const UserTotal& user : totals.users) {
    if (user.devices > 0)
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", printable(user.user), user.devices);
  }
  return {text.empty() ? std::string(kUnknown) : text};
}

std::string host_lines(const Hosts& hosts, const Style& style) {
  const std::vector<Column> columns{{"HOST", Align::left, 8},
                                    {"GPUS", Align::left, 12},
                                    {"FREE", Align::right},
                                    {"WAITING", Align::right, 0, 1},
                                    {"LEASED BY", Align::left, 20}};
  std::vector<Row> rows;
  for (const auto& host : hosts) {
    const Totals totals = totals_of_one(host);
    std::size_t waiting = 0;
    for (const UserTotal& user : totals.users) waiting += user.waiting;
    const bool up = host->is_up();
    rows.push_back({{printable(host->name)},
                    {host->bare ? bare_models_text(*host->bare) : models_text(totals)},
                    {up ? std::to_string(totals.free) : std::string(kUnknown),
                     up && totals.free > 0 ? Tone::good : Tone::plain},
                    {up ? std::to_string(waiting) : std::string(kUnknown)},
                    state_cell(*host, totals, style)});
  }
  return table(columns, rows, style);
}

/// The reasons have lines of their own: in the table they would be cut down to nothing.
std::string trouble_lines(const Hosts& hosts, const Style& style) {
  std::string text;
  for (const auto& host : hosts) {
    const std::string trouble = trouble_of(*host);
    if (trouble.empty()) continue;
    text += wrapped(fmt::format("{}: {}", printable(host->name), trouble), style.width, 2) + "\n";
  }
  return text.empty() ? "" : "\n" + text;
}

std::string user_lines(const Totals& totals, const Style& style) {
  if (totals.users.empty()) return "";
  const std::vector<Column> columns{
      {"USER", Align::left, 8}, {"GPUS", Align::right}, {"LEASES", Align::right}, {"WAITING", Align::right}};
  std::vector<Row> rows;
  for (const UserTotal& user : totals.users) {
    rows.push_back({{printable(user.user)},
                    {std::to_string(user.devices)},
                    {std::to_string(user.leases)},
                    {std::to_string(user.waiting)}});
  }
  return "\n" + table(columns, rows, style);
}

}  // namespace

std::string hosts_table(const Hosts& hosts, const Style& style) {
  if (hosts.empty()) return "";
  const Totals totals = totals_of(hosts);
  return hosts_summary(hosts, totals, style) + host_lines(hosts, style) + trouble_lines(hosts, style) +
         user_lines(totals, style);
}

namespace {

Cell text_cell(std::string_view text) {
  return {text.empty() ? std::string(kUnknown) : printable(text)};
}

std::string waited(const Ticket& ticket, const Style& style) {
  return duration_for_people(std::max<std::int64_t>(0, style.now_s - ticket.joined_s));
}

std::string short_noted_command(const Ticket& ticket) {
  Ticket shortened = ticket;
  shortened.command = short_command(ticket.command);
  const std::string text = noted_command(shortened);
  return text.empty() ? std::string(kUnknown) : text;
}

constexpr std::ptrdiff_t kAfterWaited = 5;

}  // namespace

std::vector<Column> waiter_columns(bool foresees) {
  std::vector<Column> columns{{"POS", Align::right},           {"ID", Align::left},
                              {"USER", Align::left, 8},        {"PID", Align::right, 0, 3},
                              {"WAITED", Align::right},        {"BEHIND", Align::left, 0, 4},
                              {"REQUEST", Align::left, 12, 2}, {"COMMAND", Align::left, 10, 1},
                              {"REASON", Align::left, 16}};
  if (foresees) columns.insert(columns.begin() + kAfterWaited, {"START", Align::right});
  return columns;
}

Row waiter_row(const Standing& waiter, const ShortNames& names, bool foresees, const Style& style) {
  const Ticket& ticket = waiter.ticket;
  Row row{{std::to_string(waiter.position)},
          {names.of(ticket.id)},
          text_cell(ticket.user),
          {std::to_string(ticket.taker.pid)},
          {waited(ticket, style)},
          {waiter.behind && !waiter.fills_gap_until_s ? names.of(waiter.behind->id) : std::string(kUnknown)},
          text_cell(ticket.request),
          {short_noted_command(ticket)},
          {waiter.reason, Tone::waiting}};
  if (!foresees) return row;
  std::string start = clock_time(waiter.starts_at_s.value_or(0), style);
  row.insert(row.begin() + kAfterWaited, {start.empty() ? std::string(kUnknown) : std::move(start)});
  return row;
}

bool any_start_is_known(const std::vector<Standing>& waiters) {
  return std::ranges::any_of(waiters, [](const Standing& each) { return bool(each.starts_at_s); });
}

std::string queue_table(const std::vector<Standing>& waiters, const Ledger& ledger, const Style& style) {
  if (waiters.empty()) return "nobody waits\n";
  const bool foresees = any_start_is_known(waiters);
  const ShortNames names(ledger);
  std::vector<Row> rows;
  for (const Standing& waiter : waiters) rows.push_back(waiter_row(waiter, names, foresees, style));
  return table(waiter_columns(foresees), rows, style) +
         unlisted_lines(ledger.unlisted, &Unlisted::waiting, "request", style);
}

std::vector<Column> lab_waiter_columns(bool foresees, bool lab) {
  std::vector<Column> columns = waiter_columns(foresees);
  if (lab) columns.insert(columns.begin(), {"LAB", Align::right});
  columns.insert(columns.begin(), {"HOST", Align::left, 8});
  return columns;
}

Row lab_waiter_row(const LabWaiter& waiter, const ShortNames& names, bool foresees, bool lab,
                   const Style& style) {
  const std::string host = printable(waiter.at->name);
  const bool is_one = waiter.hosts.size() == 1;
  Standing shown = *waiter.nearest;
  shown.reason = printable(shown.reason);
  if (!is_one) shown.reason = fmt::format("{}: {}", host, shown.reason);
  Row row = waiter_row(shown, names, foresees, style);
  if (lab)
    row.insert(row.begin(), {waiter.position ? std::to_string(*waiter.position) : std::string(kUnknown)});
  row.insert(row.begin(), {is_one ? host : counted(waiter.hosts.size(), "host")});
  return row;
}

std::string hosts_queue_table(const Hosts& hosts, const LabOrder& order, const Style& style) {
  const bool foresees = std::ranges::any_of(
      hosts, [](const auto& host) { return host->report && any_start_is_known(host->report->waiters); });
  const bool lab = !order.standing.empty();
  ShortNamesByLedger names;
  std::vector<Row> rows;
  for (const LabWaiter& each : merged_queue(hosts, order))
    rows.push_back(lab_waiter_row(each, names.of(each.at->report->ledger), foresees, lab, style));
  std::string below;
  const auto add = [&](const std::string& text) { below += wrapped(text, style.width, 2) + "\n"; };
  if (order.outside > 0)
    add(fmt::format("{} in the queue of the lab, not yet in the queue of a host",
                    counted(order.outside, "more request")));
  for (const auto& host : hosts)
    if (!host->report) add(fmt::format("{}: {}", printable(host->name), printable(host->error)));
  const std::string waiting =
      rows.empty() ? "nobody waits\n" : table(lab_waiter_columns(foresees, lab), rows, style);
  return below.empty() ? waiting : waiting + "\n" + below;
}

}  // namespace berth::view
