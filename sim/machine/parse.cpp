#include "machine/parse.h"

#include "machine/parse_parts.h"

namespace berth::sim {
namespace {

// The generation decides texts (names, MIG UUIDs), so it is known before the first device is read.
void parse_driver(Table& top, Scenario& scenario) {
  top.set("driver", scenario.driver);
  top.set("generation", scenario.generation);
  if (auto cuda = top.number("cuda", 1, 99))
    scenario.cuda =
        static_cast<int>(*cuda * 10 + 0.5) / 10 * 1000 + static_cast<int>(*cuda * 10 + 0.5) % 10 * 10;
  if (!scenario.driver.empty() && generation_of_driver(scenario.driver) == nullptr)
    top.wrong("driver", "\"driver\" must be a version such as \"550.163.01\"");
  if (!scenario.generation.empty() && generation_named(scenario.generation) == nullptr)
    top.wrong("generation", std::string("\"generation\" must be one of ") + generation_names());
  // Tools write both into one 80-byte buffer, and so does the driver.
  if (scenario.driver.size() > 60) top.wrong("driver", "\"driver\" is too long");
}

void parse_amd(const toml::table& source, Problems& problems, Scenario& scenario) {
  Table table(source, problems, "[[amd]]");
  const auto model = table.text("model");
  if (!model && !table.has("model")) table.wrong("[[amd]] needs \"model\", for instance \"MI300X\"");
  if (model && !names_mi300x(*model)) table.wrong("model", "unknown model \"" + *model + "\": it is MI300X");
  scenario.amd_cards += static_cast<unsigned>(table.integer("count", 1, 256).value_or(1));
  table.finish();
}

void parse_top(Table& top, Problems& problems, Scenario& scenario) {
  parse_driver(top, scenario);
  if (auto result = top.integer("init_result", 0, 999)) scenario.init_result = static_cast<int>(*result);
  top.set("call_log", scenario.call_log);
  top.set("library_missing", scenario.library_missing);
  if (auto delay = top.duration_us("memory_return_delay")) scenario.memory_return_delay_us = *delay;
  for (const toml::table* device : top.tables("device"))
    parse_device(*device, problems, scenario.active_generation(), scenario.devices);
  for (const toml::table* amd : top.tables("amd")) parse_amd(*amd, problems, scenario);
  if (problems.any()) return;  // what follows refers to devices
  parse_topology(top, problems, scenario);
  for (const toml::table* fault : top.tables("fault"))
    parse_fault(*fault, problems, scenario.faults.emplace_back());
  top.finish();
}

}  // namespace

void parse_fault(const toml::table& source, Problems& problems, Fault& fault) {
  Table table(source, problems, "[[fault]]");
  if (auto call = table.text("call"))
    fault.call = *call;
  else if (!table.has("call"))
    table.wrong("[[fault]] needs \"call\", for instance \"nvmlDeviceGet*\"");
  if (auto device = table.integer("device", 0, 65535)) fault.device = static_cast<unsigned>(*device);
  if (auto from = table.integer("from_call", 1, INT64_MAX))
    fault.from_call = static_cast<std::uint64_t>(*from);
  if (auto times = table.integer("times", 1, INT64_MAX)) fault.times = static_cast<std::uint64_t>(*times);
  if (auto result = table.integer("result", 0, 999)) fault.result = static_cast<int>(*result);
  if (auto delay = table.duration_us("delay")) fault.delay_us = *delay;
  table.set("hang", fault.hang);
  table.set("crash", fault.crash);
  table.set("stale_count", fault.stale_count);
  table.set("grow", fault.grow, 100000);
  table.set("shared", fault.shared);
  table.finish();
  if (!fault.result && fault.delay_us == 0 && !fault.hang && !fault.crash && !fault.stale_count &&
      fault.grow == 0)
    table.wrong("[[fault]] does nothing: give result, delay, hang, crash, grow or stale_count");
  fault.identity = hash_text(fault.call, (fault.device ? *fault.device + 1 : 0) ^ fault.from_call << 20 ^
                                             fault.times << 40 ^
                                             static_cast<std::uint64_t>(fault.result.value_or(0)) << 32 ^
                                             fault.delay_us << 8 ^ (fault.hang ? 1U : 0U) << 16 ^ fault.grow);
}

std::string parse_scenario(std::string_view text, const std::string& file, Scenario& scenario) {
  Problems problems(file);
  toml::parse_result parsed = toml::parse(text, std::string_view(file));
  if (!parsed) {
    problems.add(parsed.error().source(), std::string(parsed.error().description()));
    return problems.first();
  }
  Table top(parsed.table(), problems, "the file");
  parse_top(top, problems, scenario);
  return problems.first();
}

}  // namespace berth::sim
