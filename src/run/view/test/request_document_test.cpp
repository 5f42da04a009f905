// What is written from the table of requests is what it was written from: docs/requests.md, a table
// of docs/manual.md, the requests in docs/schema and python/berth/_request_fields.py. `./dev
// readings` writes them anew.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "berth/request/test/said.h"
#include "berth/view/json.h"
#include "berth/view/refusal.h"
#include "berth/view/test/written.h"

namespace berth::view::request_document_test {
namespace {

using berth::test::said;
using test::check_written;
using test::text_of_file;

using Face = RequestFace RequestField::*;
constexpr Face kCall = &RequestField::python;
constexpr Face kJob = &RequestField::job;

struct SchemaOf {
  const RequestField& field;

  Json operator()(bool) const { return {{"type", "boolean"}}; }
  Json operator()(Order) const { return {{"enum", words_of(berth::Order())}}; }
  // Without a share no memory is promised.
  Json operator()(std::uint64_t) const { return {{"type", {"integer", "null"}}, {"minimum", 0}}; }
  Json operator()(unsigned) const { return {{"type", "integer"}, {"minimum", field.least}}; }
  template <class Number>
  Json operator()(const std::optional<Number>&) const {
    return {{"type", {"integer", "null"}}, {"minimum", 0}};
  }
  template <class Text>
  Json operator()(const std::vector<Text>&) const {
    return {{"type", "array"}, {"items", {{"type", "string"}, {"minLength", 1}}}};
  }
};

std::string schema_with_requests(const std::string& text) {
  Json schema = Json::parse(text);
  Json& request = schema["properties"]["request"];
  const Request plain;
  request["required"] = Json::array();
  request["properties"] = Json::object();
  for (const RequestField& field : request_fields()) {
    const std::string key(name_in(&RequestField::json, field));
    if (key.empty()) continue;
    request["required"].push_back(key);
    request["properties"][key] = with_member(field, plain, SchemaOf{field});
  }
  return schema.dump(2) + "\n";
}

/// How a value is written in Python.
struct PythonForm {
  std::string_view type;  ///< for whoever reads or checks the call
  std::string_view kind;  ///< for python/berth/_request.py, which makes the option's text of it
};

PythonForm python_form(RequestValue kind) {
  switch (kind) {
    case RequestValue::number:
    case RequestValue::seed:
      return {"int", "number"};
    case RequestValue::truth:
      return {"bool", "flag"};
    case RequestValue::condition:
    case RequestValue::text_filter:
    case RequestValue::order:
      return {"str", "text"};
    case RequestValue::number_filter:
      return {"Size", "text"};
    case RequestValue::selectors:
      return {"Selectors", "selectors"};
    case RequestValue::size_filter:
    case RequestValue::share:
      return {"Size", "size"};
    case RequestValue::time:
      return {"Time", "time"};
    case RequestValue::grace:
      return {"Time", "grace"};
  }
  return {};
}

/// Arguments that have a place of their own in a signature: they come first, take functions, or
/// have been there longest.
bool is_in_signature(Face face, std::string_view name) {
  constexpr std::array<std::string_view, 6> kOfCalls{"n", "where", "order", "memory", "shared", "time"};
  constexpr std::array<std::string_view, 6> kOfJobs{"n", "where", "memory", "free", "time", "yield_"};
  return std::ranges::find(face == kCall ? kOfCalls : kOfJobs, name) !=
         (face == kCall ? kOfCalls : kOfJobs).end();
}

std::string python_class(std::string_view title, Face face) {
  std::string text = fmt::format("\n    class {}(TypedDict, total=False):\n", title);
  for (const RequestField& field : request_fields()) {
    const std::string_view name = name_in(face, field);
    if (!name.empty() && !is_in_signature(face, name))
      text += fmt::format("        {}: {}\n", name, python_form(field.kind).type);
  }
  return text;
}

std::string python_table(std::string_view title, Face face) {
  std::string text = fmt::format("{} = {{\n", title);
  for (const RequestField& field : request_fields()) {
    const std::string_view name = name_in(face, field);
    if (!name.empty())
      text += fmt::format("    \"{}\": (\"{}\", \"{}\", {}),\n", name, field.name,
                          python_form(field.kind).kind, field.least);
  }
  return text + "}\n";
}

std::string python_fields() {
  return "\"\"\"What a request can say. Written by `./dev readings` from "
         "src/core/request/request_fields.cpp.\"\"\"\n\n"
         "from __future__ import annotations\n\n"
         "TYPE_CHECKING = False\n"
         "if TYPE_CHECKING:\n"
         "    from collections.abc import Iterable\n"
         "    from typing import TypedDict, Union\n\n"
         "    Size = Union[str, int]\n"
         "    Time = Union[None, int, float, str]\n"
         "    Selectors = Union[str, int, Iterable[Union[str, int]]]\n" +
         python_class("Filters", kCall) + python_class("JobFilters", kJob) +
         "\n\n# For each argument: the option that it stands for, how its value is written, and the least "
         "number.\n" +
         python_table("ARGUMENTS", kCall) + python_table("JOB_ARGUMENTS", kJob);
}

std::string cell(std::string_view name, const RequestFace& face) {
  return face.exists() ? fmt::format("`{}`", name) : fmt::format("no: {}", face.why_not);
}

std::string document() {
  std::string text =
      "# What a request can say\n\n"
      "Each option has one row in `src/core/request/request_fields.cpp`, and this page is written from "
      "these "
      "rows. All faces of Berth walk this table. If one of them does not have an option, its cell says "
      "why. `berth sbatch` takes the options of Slurm instead: their table is "
      "`src/run/slurm/sbatch_options.cpp`.\n\n"
      "| option | what | in JSON | `berth.pick`, `why`, `lease` | `berth.submit` | MCP | `--on slurm` |\n"
      "|--|--|--|--|--|--|--|\n";
  for (const RequestField& field : request_fields()) {
    const std::string_view job = name_in(kJob, field);
    text += fmt::format("| `--{}{}{}` | {} | {} | {} | {} | {} | {} |\n", field.name,
                        field.value.empty() ? "" : " ", field.value, field.help,
                        cell(name_in(&RequestField::json, field), field.json),
                        cell(name_in(kCall, field), field.python), cell(job, field.job), cell(job, field.mcp),
                        field.slurm == SlurmAnswer::kept      ? "yes"
                        : field.slurm == SlurmAnswer::refused ? "refused"
                                                              : "as its other options");
  }
  return text;
}

/// The manual with its table of what a request can say.
std::string manual_with_options(const std::string& manual) {
  constexpr std::string_view kBegin = "<!-- from the table of requests -->\n";
  constexpr std::string_view kEnd = "<!-- end of what is from the table -->\n";
  const std::size_t begin = manual.find(kBegin);
  const std::size_t end = manual.find(kEnd);
  REQUIRE(begin != std::string::npos);
  REQUIRE(end != std::string::npos);
  std::string rows = "| Option | Meaning |\n|---|---|\n";
  for (const RequestField& field : request_fields()) {
    rows +=
        fmt::format("| {}`--{}{}{}` | {} |\n", field.letter != 0 ? fmt::format("`-{}`, ", field.letter) : "",
                    field.name, field.value.empty() ? "" : " ", field.value, field.help);
  }
  return manual.substr(0, begin + kBegin.size()) + rows + manual.substr(end);
}

TEST_CASE("what is written from the table of requests is as the table says") {
  for (const std::string path : {"/docs/schema/why.json", "/docs/schema/why-hosts.json"})
    check_written(path, schema_with_requests(text_of_file(path)));
  check_written("/python/berth/_request_fields.py", python_fields());
  check_written("/docs/requests.md", document());
  check_written("/docs/manual.md", manual_with_options(text_of_file("/docs/manual.md")));
}

TEST_CASE("what any row of the table says is in JSON and in words, or the table says why not") {
  Json plain = request_json({});
  for (const RequestField& field : request_fields()) {
    CAPTURE(field.name);
    const Request request = said(field);
    const std::string key(name_in(&RequestField::json, field));
    Json json = request_json(request);
    CHECK(json.contains(key) == !key.empty());
    if (json.contains(key)) CHECK(json[key] != plain[key]);
    if (field.words.exists()) CHECK(request_in_words(request) != request_in_words({}));
  }
}

}  // namespace
}  // namespace berth::view::request_document_test
