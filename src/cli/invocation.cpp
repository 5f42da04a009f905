#include "berth/cli/invocation.h"

#include <algorithm>
#include <array>
#include <ranges>

#include "berth/base/error.h"
#include "berth/base/text.h"
#include "berth/cli/driver.h"
#include "berth/command/command.h"
#include "berth/sys/job_process.h"

namespace berth::cli {
namespace {

struct General {
  std::optional<std::string> sim;
  bool version = false;
};

command::Syntax general_syntax(General& general) {
  command::Syntax syntax;
  syntax.arguments = "[COMMAND]";
  syntax.options_end_at_first_word = true;
  syntax.add(simulation_option(general.sim));
  syntax.flag("Options", "version", "print the version", general.version, 'V');
  return syntax;
}

std::vector<std::string_view> command_names() {
  std::vector<std::string_view> names;
  for (const Row& row : rows()) {
    if (!row.summary.empty()) names.push_back(row.name);
  }
  return names;
}

struct Heading {
  CommandGroup group;
  std::string_view title;
};
constexpr auto kHeadings =
    std::to_array<Heading>({{CommandGroup::look, "Look"},
                            {CommandGroup::run_now, "Run now"},
                            {CommandGroup::run_later, "Run later"},
                            {CommandGroup::machines, "Several machines: --anywhere with most of these"},
                            {CommandGroup::administer, "Admin"}});

auto rows_of(CommandGroup group) {
  return rows() | std::views::filter(
                      [group](const Row& row) { return row.shown.group == group && !row.summary.empty(); });
}

std::string line_of(const Row& row) {
  const std::string names =
      row.alias.empty() ? std::string(row.name) : fmt::format("{}, {}", row.name, row.alias);
  return fmt::format("  {:<11} {}\n", names, row.summary);
}

std::vector<std::string_view> commands_that_know(std::string_view option) {
  static std::optional<std::string> unused;  // what the setter would write to; it is not called
  std::vector<std::string_view> names;
  for (const Row& row : rows()) {
    if (row.summary.empty()) continue;
    const auto command = row.make();
    const auto options = full_syntax(row, *command, unused).options;
    if (std::ranges::find(options, option, &command::Option::name) != options.end())
      names.push_back(row.name);
  }
  return names;
}

// Users of --anywhere try it with other commands too.
Error clearer(Error error, const Row& row, std::span<char* const> words) {
  const bool tried = std::ranges::any_of(words, [](std::string_view word) { return word == "--anywhere"; });
  if (!tried || error.message.find("--anywhere") == std::string::npos) return error;
  if (row.name == "claim")
    error.message =
        "a claim is for the shell that you are in, so it is on this machine; berth shell --anywhere "
        "starts a shell on the first host that has the GPUs";
  else
    error.message = fmt::format(
        "berth {} cannot ask other hosts; these commands can: {}. Log in on a host for the rest: ssh HOST "
        "berth {}",
        row.name, fmt::join(commands_that_know("anywhere"), ", "), row.name);
  return error;
}

std::unexpected<Error> unknown_command(std::string_view name) {
  const auto names = command_names();
  const command::Habit* const habit = command::habit_of(name);
  if (habit != nullptr && habit->meant.empty())
    return fail(ErrorCode::usage, "{} {}; `berth help` lists the commands", printable(name), habit->advice);
  const std::string_view meant = habit == nullptr ? nearest_word(name, names) : habit->meant;
  std::string help = meant.empty() ? "" : fmt::format(", did you mean {}?", meant);
  if (meant.empty() && !sys::cannot_start({std::string(name)}))
    help = fmt::format(" (to run that program: berth run -- {})", printable(name));
  return fail(ErrorCode::usage, "unknown command '{}'{}; `berth help` lists the commands", printable(name),
              help);
}

}  // namespace

std::string full_name(const Row& row) {
  return fmt::format("berth {}", row.name);
}

command::Syntax full_syntax(const Row& row, command::Command& command, std::optional<std::string>& sim) {
  command::Syntax syntax;
  command.syntax(syntax);
  if (row.needs_probe) syntax.add(simulation_option(sim));
  return syntax;
}

std::string general_help() {
  std::string text =
      "berth: looks at the GPUs of this machine, picks the right ones, and leases them\n\n"
      "usage: berth [COMMAND] [OPTIONS]                     `berth` alone: berth list\n\n";
  for (const Heading& heading : kHeadings) {
    std::vector<std::string_view> more;
    std::string lines;
    for (const Row& row : rows_of(heading.group)) {
      if (row.shown.comes_first)
        lines += line_of(row);
      else
        more.push_back(row.name);
    }
    text += more.empty() ? fmt::format("{}\n", heading.title)
                         : fmt::format("{} (more: {})\n", heading.title, fmt::join(more, ", "));
    text += lines;
  }
  return text + "\n`berth help --all` explains every command in a line, `berth COMMAND --help` one.\n";
}

std::string help_on_all() {
  std::string text = "usage: berth [--sim MACHINE] [COMMAND] [OPTIONS]\n";
  for (const Heading& heading : kHeadings) {
    text += fmt::format("\n{}\n", heading.title);
    for (const Row& row : rows_of(heading.group)) text += line_of(row);
  }
  return text +
         "\nOptions\n"
         "  --sim MACHINE  on a simulated machine: a scenario file, or 8xH100\n"
         "  -V, --version  print the version\n"
         "  -h, --help     as `berth help`, or `berth COMMAND --help`\n"
         "\n"
         "`berth` alone, or with options of `berth list`, lists the GPUs. Exit status:\n"
         "0 done, 1 failure, 2 usage, 69 no driver or never possible here, 75 not now,\n"
         "124 a wait ran out; `run`: the command's own.\n";
}

/// How many of the words come before the command, or before what is an option of `list`.
std::size_t count_general(const command::Syntax& syntax, std::span<char* const> words) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string_view word = words[i];
    if (word == "-h" || word == "--help" || word == "-V") continue;
    const auto known = std::ranges::find_if(syntax.options, [&](const command::Option& each) {
      return word.starts_with("--") && word.substr(2, word.find('=') - 2) == each.name;
    });
    if (known == syntax.options.end()) return i;
    if (!known->value.empty() && word.find('=') == std::string_view::npos) ++i;
  }
  return words.size();
}

Result<Invocation> read_invocation(std::span<char*> words) {
  General general;
  const command::Syntax syntax = general_syntax(general);
  const std::size_t before = count_general(syntax, words);
  const bool of_list = before < words.size() && std::string_view(words[before]).starts_with('-') &&
                       std::string_view(words[before]) != "--";
  BERTH_LET(const auto parsed, parse(syntax, "berth", of_list ? words.first(before) : words));
  Invocation invocation;
  if (parsed.help || general.version) {
    invocation.text = parsed.help ? general_help() : fmt::format("berth {}\n", version());
    return invocation;
  }
  invocation.sim = general.sim;
  invocation.words = words.subspan(of_list ? before : words.size() - parsed.words.size());
  if (parsed.words.empty()) {
    invocation.row = find_row("list");
    return invocation;
  }
  const std::string_view name = parsed.words.front();
  invocation.row = find_row(name);
  invocation.words = invocation.words.subspan(1);
  if (invocation.row != nullptr) return invocation;
  return unknown_command(name);
}

bool does_more_than_look(const Invocation& invocation) {
  const Row* row = invocation.row;
  return row != nullptr && !row->summary.empty() && row->shown.group != CommandGroup::look;
}

bool wants_probe(const Invocation& invocation) {
  if (invocation.row == nullptr || !invocation.row->needs_probe || invocation.row->is_program ||
      invocation.sim)
    return false;
  return std::ranges::none_of(invocation.words, [](std::string_view word) {
    return word == "--help" || word == "-h" || word.starts_with("--sim") || word.starts_with("--hub") ||
           word == "--anywhere";
  });
}

Result<command::Output> perform(const Invocation& invocation, command::Environment& environment) {
  if (invocation.row == nullptr) return command::Output{.out = invocation.text};
  const Row& row = *invocation.row;
  const std::unique_ptr<command::Command> command = row.make();
  std::optional<std::string> sim = invocation.sim;
  command::Syntax syntax = full_syntax(row, *command, sim);
  const auto failed = [&](const Error& error) {
    const int status = outcome_of(error.code).exit_status;
    [[maybe_unused]] const auto written =
        command::write_all(1, command->out_of_failure(status, invocation.words));
    return std::unexpected(error);
  };
  const auto parsed = parse(syntax, full_name(row), invocation.words);
  if (!parsed) return failed(clearer(parsed.error(), row, invocation.words));
  if (parsed->help) return command::Output{.out = help_text(syntax, full_name(row), row.summary)};
  if (sim) {
    const std::size_t untouched = syntax.options_end_at_first_word ? parsed->words.size() : 0;
    return enter_simulation(*sim, environment.words(), untouched);
  }
  // A command may last for days, and a thousand may wait.
  syntax = {};
  auto output = command->run(environment, parsed->words);
  if (!output) return failed(output.error());
  if (output->status != 0 && output->out.empty())
    output->out = command->out_of_failure(output->status, invocation.words);
  return output;
}

}  // namespace berth::cli
