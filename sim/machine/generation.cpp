#include "machine/generation.h"

#include <charconv>

namespace berth::sim {
namespace {

constexpr Generation kGenerations[] = {
    {"r450", "450.51.06", 450, 11000, 11, false},      {"r460", "460.91.03", 460, 11020, 11, false},
    {"r470", "470.256.02", 470, 11040, 11, false},     {"r510", "510.108.03", 510, 11060, 11, false},
    {"r535.54", "535.54.03", 535, 12020, 12, true},    {"r535.98", "535.98", 535, 12020, 12, false},
    {"r535.104", "535.104.05", 535, 12020, 12, false}, {"r550", "550.163.01", 550, 12040, 12, false},
    {"r570", "570.124.06", 570, 12080, 12, false},     {"r580", "580.65.06", 580, 13000, 13, false},
};

const char* name_for(int branch, int minor) {
  if (branch < 455) return "r450";
  if (branch < 470) return "r460";
  if (branch < 510) return "r470";
  if (branch < 535) return "r510";
  if (branch == 535) return minor < 98 ? "r535.54" : minor < 104 ? "r535.98" : "r535.104";
  if (branch < 570) return "r550";
  return branch < 580 ? "r570" : "r580";
}

}  // namespace

const Generation* generation_named(std::string_view name) {
  for (const Generation& generation : kGenerations)
    if (name == generation.name) return &generation;
  return nullptr;
}

const Generation* generation_of_driver(std::string_view version) {
  int branch = 0;
  int minor = 0;
  const char* end = version.data() + version.size();
  auto first = std::from_chars(version.data(), end, branch);
  if (first.ec != std::errc{} || first.ptr == end || *first.ptr != '.') return nullptr;
  auto second = std::from_chars(first.ptr + 1, end, minor);
  if (second.ec != std::errc{}) return nullptr;
  return generation_named(name_for(branch, minor));
}

const Generation& default_generation() {
  return *generation_named("r550");
}

const char* generation_names() {
  return "r450, r460, r470, r510, r535.54, r535.98, r535.104, r550, r570, r580";
}

}  // namespace berth::sim
