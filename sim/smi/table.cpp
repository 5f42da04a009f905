// The table for people, in the three widths that the tool has had: up to R525, R530 to R545, and
// since R550.
#include "smi/report.h"

namespace berth::sim {
namespace {

struct Style {
  unsigned name_column;  // widths between the bars
  unsigned memory_column;
  const char* versions;  // %s driver, %s driver, %s CUDA
  const char* titles[3];
};

constexpr Style kOld = {31,
                        22,
                        " NVIDIA-SMI %-12s Driver Version: %-13sCUDA Version: %-9s",
                        {" GPU  Name        Persistence-M| Bus-Id        Disp.A | Volatile Uncorr. ECC ",
                         " Fan  Temp  Perf  Pwr:Usage/Cap|         Memory-Usage | GPU-Util  Compute M. ",
                         "                               |                      |               MIG M. "}};
constexpr Style kWide = {
    41,
    22,
    " NVIDIA-SMI %-22s Driver Version: %-13sCUDA Version: %-9s",
    {" GPU  Name                 Persistence-M | Bus-Id        Disp.A | Volatile Uncorr. ECC ",
     " Fan  Temp   Perf          Pwr:Usage/Cap |         Memory-Usage | GPU-Util  Compute M. ",
     "                                         |                      |               MIG M. "}};
constexpr Style kWidest = {
    41,
    24,
    " NVIDIA-SMI %-22s Driver Version: %-15sCUDA Version: %-9s",
    {" GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC ",
     " Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. ",
     "                                         |                        |               MIG M. "}};
constexpr unsigned kLastColumn = 22;

const Style& style_of(int branch) {
  return branch < 530 ? kOld : branch < 550 ? kWide : kWidest;
}
unsigned inner_width(const Style& style) {
  return style.name_column + style.memory_column + kLastColumn + 2;
}

std::string bar(char begin, char fill, char end, const Style& style) {
  const char middle = '+';
  return begin + std::string(style.name_column, fill) + middle + std::string(style.memory_column, fill) +
         middle + std::string(kLastColumn, fill) + end + "\n";
}

std::string full_bar(const Style& style, char fill = '-', char end = '+') {
  return end + std::string(inner_width(style), fill) + end + "\n";
}

std::string row(std::string text, const Style& style) {
  text.resize(inner_width(style), ' ');
  return "|" + text + "|\n";
}

std::string shortened(std::string text, std::size_t most, bool keep_end) {
  if (text.size() <= most) return text;
  return keep_end ? "..." + text.substr(text.size() - most + 3) : text.substr(0, most - 3) + "...";
}

std::string name_cell(const Card& card, const Style& style) {
  const bool old = style.name_column == kOld.name_column;
  const int width = old ? 18 : 28;
  const std::string name = shortened(card.device->name, static_cast<std::size_t>(width), false);
  return line("%4u  %-*s  %3s  ", card.index, width, name.c_str(), card.device->persistence ? "On" : "Off");
}

std::string health_cell(const Card& card, const Style& style) {
  const Device& device = *card.device;
  const std::string fan = device.supports(Reading::fan) ? line("%u%%", device.fan_percent) : "N/A";
  const std::string temperature =
      device.supports(Reading::temperature) ? line("%uC", device.temperature) : "N/A";
  const std::string draw = device.supports(Reading::power) ? line("%uW", device.power_mw / 1000) : "N/A";
  const std::string cap =
      device.supports(Reading::power_limit) ? line("%uW", device.power_limit_mw / 1000) : "N/A";
  const int draw_width = style.name_column == kOld.name_column        ? 7
                         : style.memory_column == kWide.memory_column ? 17
                                                                      : 16;
  const int cap_width = style.memory_column == kWidest.memory_column ? 5 : 4;
  return line(" %3s %5s    %-2s%*s / %*s ", fan.c_str(), temperature.c_str(),
              line("P%u", device.pstate).c_str(), draw_width, draw.c_str(), cap_width, cap.c_str());
}

std::string memory_cell(const Card& card, const Style& style) {
  if (!card.device->supports(Reading::memory))
    return line("%*s ", static_cast<int>(style.memory_column) - 1, "Not Supported");
  const bool widest = style.memory_column == kWidest.memory_column;
  return line("%*lluMiB / %*lluMiB ", widest ? 8 : 7, static_cast<unsigned long long>(card.used_mib),
              widest ? 6 : 5, static_cast<unsigned long long>(card.total_mib));
}

std::string use_cell(const Card& card) {
  constexpr const char* kModes[] = {"Default", "E. Thread", "Prohibited", "E. Process"};
  const bool has = card.device->supports(Reading::utilization) && !card.device->mig_enabled;
  const std::string utilization = has ? line("%u%%", card.device->utilization) : "N/A";
  return line("%8s %12s ", utilization.c_str(), kModes[card.device->compute_mode]);
}

std::string card_rows(const Card& card, const Style& style) {
  const Device& device = *card.device;
  const std::string bus = pci_text(device.pci, 8) + (device.display_active ? " On  " : " Off ");
  const std::string ecc = device.ecc         ? std::to_string(device.ecc_uncorrected)
                          : device.model.ecc ? "Off"
                                             : "N/A";
  const std::string mig = !device.supports(Reading::mig) ? "N/A"
                          : device.mig_enabled           ? "Enabled"
                                                         : "Disabled";
  const auto memory = static_cast<int>(style.memory_column);
  return row(name_cell(card, style) + line("|%*s|%21s ", memory, bus.c_str(), ecc.c_str()), style) +
         row(health_cell(card, style) + "|" + memory_cell(card, style) + "|" + use_cell(card), style) +
         row(line("%*s|%*s|%21s ", static_cast<int>(style.name_column), "", memory, "", mig.c_str()), style);
}

// The MIG table keeps its outer columns and widens the one with the memory.
int mig_memory_column(const Style& style) {
  return static_cast<int>(inner_width(style)) - 18 - 11 - 23 - 3;
}

std::string mib_pair(std::uint64_t used, std::uint64_t total) {
  return line("%lluMiB / %5lluMiB", static_cast<unsigned long long>(used / kMiB),
              static_cast<unsigned long long>(total / kMiB));
}

std::string mig_rows(const Card& card, std::size_t slot, const Style& style) {
  const Instance& instance = card.device->instances[slot];
  const int width = mig_memory_column(style) - 1;
  const std::string memory = mib_pair(card.load.slot_used_bytes[slot], instance.memory_bytes);
  const std::string window = mib_pair(0, card.device->bar1_bytes(&instance));
  return row(line("%3u  %3u %3u %3zu  |%*s |%3u      0 | %2u   0 %4u    0    0 ", card.index,
                  instance.gpu_instance, instance.compute_instance, slot, width, memory.c_str(),
                  instance.multiprocessors, instance.gpu_slices, instance.gpu_slices),
             style) +
         row(line("%18s|%*s |%11s|%23s", "", width, window.c_str(), "", ""), style);
}

std::string mig_table(const Cards& cards, const Style& style) {
  const auto width = static_cast<std::size_t>(mig_memory_column(style));
  const auto rule = [&](char end, char fill) {
    return end + std::string(18, fill) + "+" + std::string(width, fill) + "+" + std::string(11, fill) + "+" +
           std::string(23, fill) + end + "\n";
  };
  std::string rows;
  for (const Card& card : cards.all)
    for (std::size_t slot = 0; slot < card.device->instances.size(); ++slot)
      if (card.device->instances[slot].present) rows += mig_rows(card, slot, style) + rule('+', '-');
  if (rows.empty()) return {};
  const int title = static_cast<int>(width) - 1;
  return full_bar(style) + row(" MIG devices:", style) + rule('+', '-') +
         row(line(" GPU  GI  CI  MIG |%*s |        Vol|         Shared        ", title, "Memory-Usage"),
             style) +
         row(line("      ID  ID  Dev |%*s | SM     Unc| CE  ENC  DEC  OFA  JPG", title, "BAR1-Usage"),
             style) +
         row(line("                  |%*s |        ECC|                       ", title, ""), style) +
         rule('|', '=') + rows + std::string(inner_width(style) + 2, ' ') + "\n";
}

std::string process_row(const Card& card, const LiveProcess& process, const Style& style) {
  const Instance* instance =
      process.slot < 0 ? nullptr : &card.device->instances[static_cast<std::size_t>(process.slot)];
  const std::string gi = instance != nullptr ? std::to_string(instance->gpu_instance) : "N/A";
  const std::string ci = instance != nullptr ? std::to_string(instance->compute_instance) : "N/A";
  const bool compute = (process.kinds & kCompute) != 0;
  const char* type = (process.kinds & kMps) != 0        ? "M+C"
                     : (process.kinds & kGraphics) == 0 ? "C"
                     : compute                          ? "C+G"
                                                        : "G";
  const std::string memory =
      process.used_bytes && card.device->supports(Reading::process_memory)
          ? line("%lluMiB", static_cast<unsigned long long>(*process.used_bytes / kMiB))
          : "N/A";
  const int width = static_cast<int>(inner_width(style)) - 47;
  const std::string name = shortened(shown_program(process), static_cast<std::size_t>(width - 1), true);
  return row(line("%5u   %-3s  %-3s%10lld%7s   %-*s%10s ", card.index, gi.c_str(), ci.c_str(),
                  static_cast<long long>(process.pid), type, width, name.c_str(), memory.c_str()),
             style);
}

std::string process_table(const Cards& cards, const Style& style) {
  const int width = static_cast<int>(inner_width(style)) - 47;
  std::string rows;
  for (const Card& card : cards.all)
    if (card.device->supports(Reading::processes))
      for (const LiveProcess& process : card.load.processes) rows += process_row(card, process, style);
  if (rows.empty()) rows = row("  No running processes found", style);
  return full_bar(style) + row(" Processes:", style) +
         row(line("  GPU   GI   CI        PID   Type   %-*sGPU Memory ", width, "Process name"), style) +
         row(line("        ID   ID                     %-*sUsage      ", width, ""), style) +
         full_bar(style, '=', '|') + rows + full_bar(style);
}

}  // namespace

std::string overview_table(const Cards& cards) {
  const Style& style = style_of(cards.scenario->active_generation().branch);
  const std::string driver = cards.scenario->driver_version();
  const std::string cuda = cuda_text(*cards.scenario);
  std::string out = report_time() + "       \n" + full_bar(style);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
  out += row(line(style.versions, driver.c_str(), driver.c_str(), cuda.c_str()), style);
#pragma GCC diagnostic pop
  out += bar('|', '-', '+', style);
  for (const char* title : style.titles) out += row(title, style);
  out += bar('|', '=', '|', style);
  for (const Card& card : cards.all) out += card_rows(card, style) + bar('+', '-', '+', style);
  out += std::string(inner_width(style) + 2, ' ') + "\n";
  return out + mig_table(cards, style) + process_table(cards, style);
}

}  // namespace berth::sim
