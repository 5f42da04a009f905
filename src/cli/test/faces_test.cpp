// What the command line, sbatch and MCP make of the table of what a request can say.
#include <doctest/doctest.h>

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>

#include "berth/base/text.h"
#include "berth/cli/invocation.h"
#include "berth/mcp/mcp_tools.h"
#include "berth/request/test/said.h"
#include "berth/slurm/sbatch_options.h"

namespace berth::cli::faces_test {
namespace {

using command::Option;

bool has(const command::Syntax& syntax, std::string_view name) {
  return std::ranges::find(syntax.options, name, &Option::name) != syntax.options.end();
}

std::string text_of(std::string_view command, const std::vector<std::string>& words) {
  command::Environment environment({});
  const auto output = find_row(command)->make()->run(environment, words);
  REQUIRE(output);
  return output->out;
}

std::string part_between(const std::string& text, const std::string& begin, const std::string& end) {
  const std::size_t at = text.find(begin);
  REQUIRE_MESSAGE(at != std::string::npos, begin);
  return text.substr(at, text.find(end, at + begin.size()) - at);
}

/// The text has `begin`, and no letter of a longer name follows.
bool has_whole(std::string_view text, std::string_view begin) {
  for (std::size_t at = text.find(begin); at != std::string_view::npos; at = text.find(begin, at + 1)) {
    const std::string_view rest = text.substr(at + begin.size());
    if (rest.empty() || std::string_view(" \n=[\\'").contains(rest.front())) return true;
  }
  return false;
}

std::string lines_with(std::string_view text, std::string_view word) {
  std::string lines;
  for (const std::string_view line : parts_at(text, '\n')) {
    if (line.contains(word)) lines.append(line).push_back('\n');
  }
  return lines;
}

std::string in_roff(std::string_view text) {
  std::string escaped;
  for (const char c : text) escaped += c == '-' ? "\\-" : std::string(1, c);
  return escaped;
}

TEST_CASE("each row of the table is an option of the commands that take a lease, or that start one") {
  for (const std::string_view name : {"run", "submit", "edit", "claim", "shell"}) {
    CAPTURE(name);
    const auto command = find_row(name)->make();
    command::Syntax syntax;
    command->syntax(syntax);
    // Berth could not end what the user does with a claim, or in a shell.
    const bool is_of_user = name == "claim" || name == "shell";
    for (const RequestField& field : request_fields()) {
      CAPTURE(field.name);
      CHECK(has(syntax, field.name) == !(is_of_user && field.part == RequestPart::job));
    }
  }
}

TEST_CASE("each row of the table stands in help, in the manual page and in the completion of each shell") {
  std::optional<std::string> sim;
  const Row& run = *find_row("run");
  const auto command = run.make();
  const std::string help = help_text(full_syntax(run, *command, sim), "berth run", run.summary);
  const std::string manual = part_between(text_of("__manual", {}), ".SS \"berth run", "\n.SS ");
  const std::string bash = part_between(text_of("completion", {"bash"}), "    run) words=", "\n");
  const std::string zsh = part_between(text_of("completion", {"zsh"}), "  run) _arguments", ";;\n");
  const std::string fish = lines_with(text_of("completion", {"fish"}), "_seen_subcommand_from run '");
  for (const RequestField& field : request_fields()) {
    CAPTURE(field.name);
    const std::string option = fmt::format("--{}", field.name);
    const std::string letter = field.letter == 0 ? "    " : fmt::format("-{}, ", field.letter);
    CHECK(has_whole(help, "\n  " + letter + option));
    CHECK(has_whole(manual, in_roff(option)));
    CHECK(has_whole(bash, option));
    CHECK(has_whole(zsh, "'" + option));
    CHECK(has_whole(fish, fmt::format(" -l {}", field.name)));
  }
}

TEST_CASE("each option of Slurm's that becomes one of ours becomes one of submit") {
  const auto submit = find_row("submit")->make();
  command::Syntax syntax;
  submit->syntax(syntax);
  bool any = false;
  for (const SlurmOption& each : slurm_options()) {
    const auto* const ours = std::get_if<std::string_view>(&each.reader);
    if (ours == nullptr) continue;
    any = true;
    CAPTURE(*ours);
    const auto found = std::ranges::find(syntax.options, *ours, &Option::name);
    REQUIRE(found != syntax.options.end());
    CHECK(found->value.empty() == each.value.empty());
  }
  CHECK(any);
}

TEST_CASE("the tools for programs have each row of the table that it gives them, and no other") {
  for (const mcp::Tool& tool : mcp::TenantTools::all()) {
    const bool asks = tool.name == "run" || tool.name == "submit" || tool.name == "edit";
    if (!asks && tool.name != "why") continue;
    CAPTURE(tool.name);
    for (const RequestField& field : request_fields()) {
      CAPTURE(field.name);
      const std::string_view name = name_in(&RequestField::job, field);
      const auto argument = std::ranges::find(tool.arguments, name, &mcp::ToolArgument::name);
      const bool is_meant = field.mcp.exists() && (asks || is_of_devices(field));
      REQUIRE((argument != tool.arguments.end()) == is_meant);
      if (is_meant) CHECK(argument->about == field.mcp.text);
    }
  }
}

}  // namespace
}  // namespace berth::cli::faces_test
