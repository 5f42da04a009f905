// Completion scripts are made from the same table and the same options that dispatch and help read.
#include <fmt/format.h>

#include <array>

#include "berth/base/text.h"
#include "berth/cli/commands.h"
#include "berth/cli/invocation.h"

namespace berth::cli {
namespace {

/// A command as completion sees it.
struct Entry {
  Row row;
  std::unique_ptr<command::Command> command;  // its syntax refers to it
  command::Syntax syntax;
};

std::vector<Entry> entries() {
  static std::optional<std::string> unused;  // what the setters would write to; they are not called
  std::vector<Entry> all;
  for (const Row& row : rows()) {
    if (row.summary.empty()) continue;
    Entry entry{row, row.make(), {}};
    entry.syntax = full_syntax(row, *entry.command, unused);
    all.push_back(std::move(entry));
  }
  return all;
}

std::string joined(const std::vector<std::string_view>& words) {
  return fmt::format("{}", fmt::join(words, " "));
}

std::string flags_of(const command::Syntax& syntax) {
  std::string flags;
  for (const command::Option& each : syntax.options) flags += fmt::format("--{} ", each.name);
  return flags + "--help";
}

std::string bash_script() {
  std::string names, flags, values, valued;
  std::vector<std::string_view> with_command;
  for (const Entry& entry : entries()) {
    if (entry.syntax.options_end_at_first_word) with_command.push_back(entry.row.name);
    names += fmt::format("{} ", entry.row.name);
    const std::string_view alias = entry.row.alias;
    const std::string pattern = fmt::format("{}{}{}", entry.row.name, alias.empty() ? "" : "|", alias);
    valued += fmt::format("  {}) with_value={} ;;\n", pattern,
                          in_shell_quotes(command::options_with_value(entry.syntax)));
    const std::string_view asks = entry.syntax.words_command;
    const std::string asked =
        fmt::format("; words+=\" $(\"${{COMP_WORDS[0]}}\" {} 2>/dev/null | cut -f 1)\"", asks);
    flags += fmt::format("    {}) words={}{} ;;\n", pattern,
                         in_shell_quotes(flags_of(entry.syntax) + " " + joined(entry.syntax.words)),
                         asks.empty() ? "" : asked);
    for (const command::Option& each : entry.syntax.options) {
      if (!each.choices.empty())
        values += fmt::format("    {}:--{}) words={} ;;\n", entry.row.name, each.name,
                              in_shell_quotes(joined(each.choices)));
    }
  }
  return fmt::format(
      R"(# bash completion for berth: source it, or put it into
# ~/.local/share/bash-completion/completions/berth
_berth() {{
  local current="${{COMP_WORDS[COMP_CWORD]}}" previous="${{COMP_WORDS[COMP_CWORD-1]}}" command= words= at with_value=
  COMPREPLY=()
  # Bash makes a word of the = in --count=2.
  [[ $previous == = ]] && previous="${{COMP_WORDS[COMP_CWORD-2]}}"
  [[ $current == = ]] && current=
  for ((at = 1; at < COMP_CWORD; at++)); do
    case "${{COMP_WORDS[at]}}" in
    --sim) ((at++)) ;;
    -*) ;;
    *) command="${{COMP_WORDS[at]}}"; break ;;
    esac
  done
  [[ $previous == *[\<\>] ]] && return
  case "$command" in
{valued}  esac
  case "$command" in {with_command})
    # From the first word on that is no option, or after --, it is the command's own line.
    while ((++at < COMP_CWORD)) && [[ ${{COMP_WORDS[at]}} == -?* ]]; do
      if [[ ${{COMP_WORDS[at]}} == -- ]]; then ((at++)); break; fi
      [[ " $with_value " == *" ${{COMP_WORDS[at]}} "* ]] && ((at++))
      [[ ${{COMP_WORDS[at+1]}} == = ]] && ((at += 2))
    done
    if ((at < COMP_CWORD)) || [[ $previous == -- || ($at -eq $COMP_CWORD && $current != -*) ]]; then
      ((at < COMP_CWORD)) && declare -F _command_offset >/dev/null && _command_offset "$at"
      ((at < COMP_CWORD)) || [[ -z $current ]] && return
      # A script may stand there, which is no command for bash.
      compopt -o filenames 2>/dev/null
      mapfile -t COMPREPLY < <(compgen -A command -A file -- "$current")
      return
    fi ;;
  esac
  case "$command:$previous" in
{values}    *:--sim) return ;;
  esac
  # A value that is none of these words may be the name of a file.
  [[ -z $words && " $with_value " == *" $previous "* ]] && return
  if [[ -z $words ]]; then
    case "$command" in
    '') words={names} ;;
{flags}    esac
  fi
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}}
complete -o bashdefault -o default -F _berth berth
)",
      fmt::arg("names", in_shell_quotes(names + "--sim --version --help")), fmt::arg("flags", flags),
      fmt::arg("with_command", fmt::format("{}", fmt::join(with_command, "|"))), fmt::arg("values", values),
      fmt::arg("valued", valued));
}

/// Text inside the [ ] of an _arguments specification.
std::string zsh_help(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '[' || c == ']' || c == ':' || c == '\\') result += '\\';
    result += c;
  }
  return result;
}

std::string zsh_option(const command::Option& each) {
  // A value that may be left out is in the same word, and what follows is completed as an argument.
  const bool optional = each.has_optional_value();
  const std::string spec = fmt::format("--{}{}[{}]", each.name,
                                       each.value.empty() ? ""
                                       : optional         ? "=-"
                                                          : "=",
                                       zsh_help(each.help));
  if (each.value.empty()) return in_shell_quotes(spec);
  const std::string action = each.name == "sim"     ? "_files"
                             : each.choices.empty() ? " "
                                                    : fmt::format("({})", joined(each.choices));
  return in_shell_quotes(fmt::format("{}{}{}:{}", spec, optional ? "::" : ":", zsh_help(each.value), action));
}

std::string zsh_script() {
  std::string names;
  std::string cases;
  for (const Entry& entry : entries()) {
    names +=
        fmt::format("    {}\n", in_shell_quotes(fmt::format("{}:{}", entry.row.name, entry.row.summary)));
    std::string arguments;
    for (const command::Option& each : entry.syntax.options)
      arguments += fmt::format(" \\\n      {}", zsh_option(each));
    arguments += " \\\n      '--help[explain this command]'";
    if (!entry.syntax.words.empty())
      arguments += fmt::format(" \\\n      ':word:({})'", joined(entry.syntax.words));
    if (!entry.syntax.words_command.empty())
      arguments += fmt::format(" \\\n      ':lease: _berth_words {}'", entry.syntax.words_command);
    if (entry.syntax.options_end_at_first_word) arguments += " \\\n      '*::command:_normal'";
    cases += fmt::format("  {}) _arguments -S{} ;;\n", entry.row.name, arguments);
    if (!entry.row.alias.empty())
      cases += fmt::format("  {}) words[1]={}; _berth_command ;;\n", entry.row.alias, entry.row.name);
  }
  return fmt::format(R"(#compdef berth
# zsh completion for berth: put it as _berth into a directory of $fpath.
_berth_words() {{
  local -a known=("${{(@f)$(_call_program words berth "$@" 2>/dev/null)}}")
  known=("${{(@)${{(@)known//:/\\:}}/$'\t'/:}}")
  _describe lease known
}}
_berth_command() {{
  case $words[1] in
{cases}  esac
}}
_berth() {{
  local -a commands=(
{names}  )
  local context state line
  _arguments -S '--sim=[on a simulated machine]:machine:_files' '--version[print the version]' '--help[explain]' \
    '1:command:->command' '*::argument:->argument'
  case $state in
  command) _describe command commands ;;
  argument) _berth_command ;;
  esac
}}
if [[ $funcstack[1] == _berth ]]; then _berth "$@"; else compdef _berth berth; fi
)",
                     fmt::arg("cases", cases), fmt::arg("names", names));
}

std::string fish_script() {
  std::string text =
      "# fish completion for berth: put it into ~/.config/fish/completions/berth.fish\n"
      "complete -c berth -f\n"
      "complete -c berth -n __fish_use_subcommand -l version -d 'print the version'\n"
      "complete -c berth -n __fish_use_subcommand -l sim -r -F -d 'on a simulated machine'\n"
      "complete -c berth -s h -l help -d 'explain'\n";
  for (const Entry& entry : entries()) {
    text += fmt::format("complete -c berth -n __fish_use_subcommand -a {} -d {}\n", entry.row.name,
                        in_shell_quotes(entry.row.summary));
    const std::string when =
        fmt::format("'__fish_seen_subcommand_from {} {}'", entry.row.name, entry.row.alias);
    for (const command::Option& each : entry.syntax.options) {
      text += fmt::format(
          "complete -c berth -n {}{} -l {}{}{} -d {}\n", when,
          each.letter == 0 ? std::string() : fmt::format(" -s {}", each.letter), each.name,
          each.value.empty() || each.has_optional_value() ? "" : " -r",
          each.choices.empty() ? std::string() : fmt::format(" -a {}", in_shell_quotes(joined(each.choices))),
          in_shell_quotes(each.help));
    }
    if (!entry.syntax.words.empty()) {
      text +=
          fmt::format("complete -c berth -n {} -a {}\n", when, in_shell_quotes(joined(entry.syntax.words)));
    }
    if (!entry.syntax.words_command.empty()) {
      text += fmt::format("complete -c berth -n {} -a '(berth {} 2>/dev/null)'\n", when,
                          entry.syntax.words_command);
    }
    if (entry.syntax.options_end_at_first_word) {
      text += fmt::format("complete -c berth -n {} -a '(__fish_complete_subcommand)'\n", when);
    }
  }
  return text;
}

struct Shell {
  std::string_view name;
  std::string (*script)();
};
constexpr std::array<Shell, 3> kShells{{{"bash", bash_script}, {"zsh", zsh_script}, {"fish", fish_script}}};

class Completion : public command::Command {
 public:
  void syntax(command::Syntax& syntax) override {
    syntax.arguments = "bash|zsh|fish";
    syntax.about = "In ~/.bashrc:\n\n    eval \"$(berth completion bash)\"";
    for (const Shell& shell : kShells) syntax.words.push_back(shell.name);
  }
  Result<command::Output> run(command::Environment&, const command::Words& words) override {
    for (const Shell& shell : kShells) {
      if (words.size() == 1 && words.front() == shell.name) return command::Output{.out = shell.script()};
    }
    return fail(ErrorCode::usage, "completion for which shell? bash, zsh or fish");
  }
};

}  // namespace

BERTH_COMMAND(make_completion, Completion);

}  // namespace berth::cli
