// nvidia-smi's forms of output, each a text made from the machine as it is now.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "machine/world.h"

namespace berth::sim {

/// A device with what is on it.
struct Card {
  unsigned index = 0;
  const Device* device = nullptr;
  Load load;
  std::uint64_t total_mib = 0;
  std::uint64_t reserved_mib = 0;
  std::uint64_t used_mib = 0;
  std::uint64_t free_mib = 0;
};

struct Cards {
  const Scenario* scenario = nullptr;
  std::vector<Card> all;
};

/// The devices that `select` names (indices, UUIDs or bus ids with commas between; "" for all).
/// false: it names something that is not there.
bool select_cards(const World& world, std::string_view select, Cards& cards);

struct Format {
  bool header = true;
  bool units = true;
};

/// Both return "" and the text, or the field that does not exist.
std::string query_devices(const Cards& cards, std::string_view fields, Format format, std::string& out);
std::string query_processes(const Cards& cards, std::string_view fields, Format format, std::string& out);

std::string device_list(const Cards& cards);
std::string overview_table(const Cards& cards);
std::string xml_report(const Cards& cards);
std::string text_report(const Cards& cards);
std::string topology_matrix(const Cards& cards);

/// The name that nvidia-smi shows for a process.
std::string shown_program(const LiveProcess& process);
/// The moment as it stands at the head of a report: "Fri Nov 27 11:18:55 2026".
std::string report_time();
/// The version of CUDA that the driver speaks: "12.8".
std::string cuda_text(const Scenario& scenario);
/// What stands for a reading that the device does not have.
const char* not_available(const Scenario& scenario);
/// printf into a std::string.
__attribute__((format(printf, 1, 2))) std::string line(const char* format, ...);

}  // namespace berth::sim
