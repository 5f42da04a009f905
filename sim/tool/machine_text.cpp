#include "tool/machine_text.h"

#include <charconv>

#include "machine/models.h"

namespace berth::sim {
namespace {

constexpr int kMost = 256;

bool split_part(std::string_view part, int& count, std::string_view& model) {
  const auto parsed = std::from_chars(part.data(), part.data() + part.size(), count);
  if (parsed.ec != std::errc{}) return false;
  model = part.substr(static_cast<std::size_t>(parsed.ptr - part.data()));
  if (model.size() < 2 || (model.front() != 'x' && model.front() != 'X')) return false;
  model.remove_prefix(1);
  return model.find('/') == std::string_view::npos && !model.ends_with(".toml");
}

}  // namespace

std::string parse_machine(std::string_view text, Machine& machine) {
  machine = {};
  std::string_view rest = text;
  while (true) {
    const std::size_t plus = rest.find('+');
    int count = 0;
    std::string_view key;
    if (!split_part(rest.substr(0, plus), count, key)) return "not a machine";
    if (count < 1 || count > kMost) return "a machine has 1 to 256 devices of a kind";
    const Model* model = model_named(key);
    const bool amd = names_mi300x(key);
    if (model == nullptr && !amd)
      return "unknown model \"" + std::string(key) + "\" (berth-sim --list-models)";
    const char* name = amd ? kMi300x.key : model->key;
    machine.name += (machine.name.empty() ? "" : "+") + std::to_string(count) + "x" + name;
    machine.text += std::string(machine.text.empty() ? "" : "\n") + (amd ? "[[amd]]" : "[[device]]") +
                    "\nmodel = \"" + name + "\"\n";
    if (count > 1) machine.text += "count = " + std::to_string(count) + "\n";
    if (plus == std::string_view::npos) return {};
    rest.remove_prefix(plus + 1);
  }
}

}  // namespace berth::sim
