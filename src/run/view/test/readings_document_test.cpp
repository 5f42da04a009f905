// What is written from the table of readings is what it was written from: docs/readings.md, the
// devices of docs/schema/list.json and web/src/readings.ts. `./dev readings` writes them anew.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "berth/device/device_readings.h"
#include "berth/view/json.h"
#include "berth/view/test/written.h"

namespace berth::view::readings_document_test {
namespace {

using test::check_written;
using test::text_of_file;

constexpr std::array<std::string_view, 9> kKinds{"text",      "bytes",  "percent", "celsius", "watts",
                                                 "megahertz", "number", "version", "truth"};
std::string_view kind_of(const DeviceReading& row) {
  return kKinds[static_cast<std::size_t>(row.kind)];
}

/// How a value of one type is written: its schema, and its type in TypeScript.
struct Form {
  Json schema;
  std::string typescript;
};

template <class Word>
Form form_of_words(int count, bool may_be_null) {
  Form form{{{"enum", Json::array()}}, ""};
  for (int i = 0; i < count; ++i) {
    const std::string word(to_text(static_cast<Word>(i)));
    form.schema["enum"].push_back(word);
    form.typescript += fmt::format("{}\"{}\"", i == 0 ? "" : " | ", word);
  }
  if (may_be_null) {
    form.schema["enum"].push_back(nullptr);
    form.typescript += " | null";
  }
  return form;
}

struct FormOf {
  const DeviceReading& row;

  Form operator()(const std::string&) const {
    return {{{"type", {"string", "null"}}, {"minLength", 1}}, "string | null"};
  }
  Form operator()(unsigned) const { return {{{"type", "integer"}, {"minimum", 0}}, "number"}; }
  Form operator()(DeviceState) const { return form_of_words<DeviceState>(6, false); }
  Form operator()(MemoryKind) const { return form_of_words<MemoryKind>(2, false); }
  Form operator()(const Reading<ComputeMode>&) const { return form_of_words<ComputeMode>(4, true); }
  Form operator()(const Reading<bool>&) const { return {{{"type", {"boolean", "null"}}}, "boolean | null"}; }
  Form operator()(const Reading<int>&) const {
    if (row.kind == FieldKind::version)
      return {{{"type", {"string", "null"}}, {"pattern", "^[0-9]+\\.[0-9]$"}}, "string | null"};
    return {{{"type", {"integer", "null"}}}, "number | null"};
  }
  template <class Number>
  Form operator()(const Reading<Number>&) const {
    return {{{"type", {"integer", "null"}}, {"minimum", 0}}, "number | null"};
  }
};

Form form_of(const DeviceReading& row) {
  const Device device;
  Form form = with_value(row, device, FormOf{row});
  Json described{{"description", row.help}};
  described.update(form.schema);
  form.schema = std::move(described);
  return form;
}

std::string code_or_nothing(std::string_view text) {
  return text.empty() ? "" : fmt::format("`{}`", text);
}

std::string readings_document() {
  std::string text =
      "# What is known of a device\n\n"
      "Each value has one row in `src/core/device/device_readings.cpp`, and this page is written from these "
      "rows. The first column is the name of the value in JSON and in Python. The name of a metric begins "
      "with `berth_`, and the metric is in Prometheus' base units. If the driver does not report a value, "
      "it is `null` in JSON and `None` in Python, and it has no series.\n\n"
      "A narrow terminal has no room for all columns of `berth list`: it leaves out the column with the "
      "number 1 first. The last column of this table says whether a MIG instance has a value of its own, or "
      "shows that of its GPU.\n\n"
      "| name | what | kind | in expressions | metric | column | changes | of a MIG instance |\n"
      "|--|--|--|--|--|--|--|--|\n";
  for (const DeviceReading& row : device_readings()) {
    const std::string_view part = part_of(row);
    text += fmt::format(
        "| `{}{}{}` | {} | {} | {} | {} | {} | {} | {} |\n", part, part.empty() ? "" : ".", row.name,
        row.help, kind_of(row), code_or_nothing(row.expression), code_or_nothing(row.metric),
        row.column.title.empty() ? "" : fmt::format("{} ({})", row.column.title, row.column.drop_order),
        row.is_static ? "never" : "yes", row.on_mig ? "its own" : "its GPU's");
  }
  text +=
      "\nBerth reads only the values that a request needs. It reads the values of each line below "
      "together:\n\n";
  std::vector<std::pair<std::uint32_t, std::string>> groups;
  for (const DeviceReading& row : device_readings()) {
    auto group = std::ranges::find(groups, row.readings.bits, &std::pair<std::uint32_t, std::string>::first);
    if (group == groups.end()) group = groups.insert(groups.end(), {row.readings.bits, ""});
    group->second += fmt::format("{}`{}`", group->second.empty() ? "" : ", ", row.name);
  }
  for (const auto& [bits, names] : groups)
    text += fmt::format("- {}{}\n", bits == 0 ? "always: " : "", names);
  return text;
}

std::string readings_types() {
  std::string parts;
  std::string device = "export interface Readings {\n";
  std::string part;
  for (const DeviceReading& row : device_readings()) {
    const std::string line = fmt::format("  {}: {};\n", row.name, form_of(row).typescript);
    if (part_of(row).empty()) {
      device += line;
    } else if (part_of(row) == part) {
      parts.insert(parts.rfind("}"), line);
    } else {
      std::string title(part_of(row));
      device += fmt::format("  {}: {}{};\n", title, static_cast<char>(title[0] - 'a' + 'A'), title.substr(1));
      title[0] = static_cast<char>(title[0] - 'a' + 'A');
      parts += fmt::format("export interface {} {{\n{}}}\n\n", title, line);
    }
    part = part_of(row);
  }
  std::string facts;
  for (const bool is_static : {false, true}) {
    for (const DeviceReading& row : device_readings()) {
      if (row.title.empty() || row.is_static != is_static) continue;
      facts += fmt::format("  {{ key: \"{}\", title: \"{}\", kind: \"{}\" }},\n", row.name, row.title,
                           kind_of(row));
    }
  }
  return "// What is known of a device. Written by `./dev readings` from "
         "src/core/device/device_readings.cpp.\n\n" +
         parts + device + "}\n\n/// What the page shows of a device as it is.\nexport const kFacts = [\n" +
         facts + "] as const;\n";
}

/// The object of the schema in which a row of this part lies.
Json& schema_of_part(Json& schema, std::string_view part) {
  return schema["$defs"][part.empty() ? std::string("device") : std::string(part)];
}

/// What else a device has in JSON.
constexpr std::array<std::string_view, 10> kOthers{"label",       "memory", "health", "mig",
                                                   "processes",   "leases", "idle",   "idle_since_s",
                                                   "passed_over", "verdict"};

/// The schema with the readings of the table in place of those that it has.
std::string listing_schema(const std::string& text) {
  Json schema = Json::parse(text);
  for (const std::string_view part : {"", "memory", "health"}) {
    Json& object = schema_of_part(schema, part);
    Json properties = Json::object();
    for (const DeviceReading& row : device_readings()) {
      if (part_of(row) == part) properties[std::string(row.name)] = form_of(row).schema;
    }
    for (const std::string_view other : kOthers) {
      if (part.empty()) properties[std::string(other)] = object["properties"][std::string(other)];
    }
    object["properties"] = properties;
    object["required"] = Json::array();
    for (const auto& [key, value] : properties.items()) object["required"].push_back(key);
  }
  return schema.dump(2) + "\n";
}

TEST_CASE("what is written from the table of readings is as the table says") {
  check_written("/docs/schema/list.json", listing_schema(text_of_file("/docs/schema/list.json")));
  check_written("/docs/readings.md", readings_document());
  check_written("/web/src/readings.ts", readings_types());
}

}  // namespace
}  // namespace berth::view::readings_document_test
