#pragma once

#include <span>
#include <string_view>

// What reads text that somebody else wrote. A target reads `input`, whatever it is, and ends the
// program where what it read does not hold together; a sanitizer ends it for the rest.
namespace berth::fuzz {

struct Target {
  std::string_view name;  ///< of its folder in the corpus, too
  void (*read)(std::string_view input);
};

std::span<const Target> targets();

/// Ends the program where `holds` is false.
void require(bool holds, std::string_view what);

void read_http(std::string_view input);
void read_hosts_document(std::string_view input);
void read_usage_document(std::string_view input);
void read_ticket(std::string_view input);
void read_snapshot(std::string_view input);
void read_expression(std::string_view input);
void read_site_file(std::string_view input);
void read_agents_file(std::string_view input);
void read_job(std::string_view input);
void read_script(std::string_view input);
void read_workload(std::string_view input);
void read_nvidia_smi(std::string_view input);
void read_nvml(std::string_view input);

}  // namespace berth::fuzz
