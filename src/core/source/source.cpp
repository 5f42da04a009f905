#include "berth/source/source.h"

#include <algorithm>

#include "berth/source/source_table.h"

namespace berth::source {

std::optional<SourceKind> source_kind_from_text(std::string_view text) {
  if (text == SourceKind::kAutomatic.name()) return SourceKind::kAutomatic;
  const auto table = source_table();
  const auto row = std::ranges::find(table, text, &SourceRow::name);
  return row == table.end() ? std::nullopt : std::optional(SourceKind(row->name));
}

bool read_value(std::string_view text, SourceKind& kind) {
  const auto known = source_kind_from_text(text);
  kind = known.value_or(kind);
  return known.has_value();
}

std::string_view to_text(SourceKind kind) {
  return kind.name();
}

std::vector<std::string_view> source_names() {
  std::vector<std::string_view> names;
  for (const SourceRow& row : source_table()) names.push_back(row.name);
  names.push_back(SourceKind::kAutomatic.name());
  return names;
}

}  // namespace berth::source
