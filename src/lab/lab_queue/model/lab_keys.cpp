#include "berth/lab_queue/model/lab_keys.h"

namespace berth::lab_queue {

std::string key_of(std::string_view folder, std::string_view name) {
  return std::string(folder) + std::string(name);
}

std::optional<std::string> name_in(std::string_view folder, std::string_view key) {
  if (!key.starts_with(folder) || key.size() == folder.size()) return std::nullopt;
  return std::string(key.substr(folder.size()));
}

}  // namespace berth::lab_queue
