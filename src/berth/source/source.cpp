#include "berth/source/source.h"

namespace berth::source {

std::optional<SourceKind> source_kind_from_text(std::string_view text) {
  for (const SourceKind kind : {SourceKind::automatic, SourceKind::nvml, SourceKind::nvidia_smi}) {
    if (text == to_text(kind)) return kind;
  }
  return std::nullopt;
}

bool read_value(std::string_view text, SourceKind& kind) {
  const auto known = source_kind_from_text(text);
  kind = known.value_or(SourceKind::automatic);
  return known.has_value();
}

std::string_view to_text(SourceKind kind) {
  switch (kind) {
    case SourceKind::nvml:
      return "nvml";
    case SourceKind::nvidia_smi:
      return "nvidia-smi";
    default:
      return "auto";
  }
}

}  // namespace berth::source
