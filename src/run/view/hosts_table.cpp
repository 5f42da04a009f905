#include "berth/view/hosts_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "berth/base/text_match.h"
#include "berth/base/units.h"
#include "berth/view/table.h"
#include "berth/view/text.h"

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

}  // namespace berth::view
