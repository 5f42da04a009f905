#include "berth/supervise/claim_script.h"

#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <optional>
#include <string>

#include <fmt/format.h>

#include "berth/base/text.h"
#include "berth/sys/file.h"
#include "berth/sys/process.h"

namespace berth::supervise {
namespace {

constexpr int kDeepest = 16;

std::string program_of(pid_t pid) {
  std::array<char, 4096> path{};
  const ssize_t length = ::readlink(fmt::format("/proc/{}/exe", pid).c_str(), path.data(), path.size());
  return length < 0 ? "" : std::string(path.data(), static_cast<std::size_t>(length));
}

std::optional<sys::FileIdentity> output_of(pid_t pid) {
  struct stat status{};
  if (::stat(fmt::format("/proc/{}/fd/1", pid).c_str(), &status) != 0) return std::nullopt;
  return sys::identity_of(status);
}

// Made by fork alone, so it runs the same program with the same words, but what it writes goes
// elsewhere. A shell that somebody started in a shell has the same terminal.
bool is_copy_for_substitution(pid_t pid, pid_t parent) {
  const std::string program = program_of(pid);
  const auto output = output_of(pid);
  return !program.empty() && program == program_of(parent) && output && output != output_of(parent) &&
         sys::process_command(pid) == sys::process_command(parent);
}

}  // namespace

pid_t calling_shell() {
  pid_t pid = ::getppid();
  for (int depth = 0; depth < kDeepest; ++depth) {
    const auto stat = sys::process_stat(pid);
    if (!stat || stat->parent <= 1 || !is_copy_for_substitution(pid, stat->parent)) break;
    pid = stat->parent;
  }
  return pid;
}

ShellKind shell_kind(pid_t process) {
  const std::string path = program_of(process);
  const std::string name = path.substr(path.rfind('/') + 1);
  if (name == "bash") return ShellKind::bash;
  if (name.starts_with("zsh")) return ShellKind::zsh;
  return name == "fish" ? ShellKind::fish : ShellKind::other;
}

// A shell may hold several claims, each on top of the one before. Each has a function that knows
// its values and those before it; the newest is asked first, so that the values which it restores
// are checked by the one before.

namespace {

constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.,:/+@%";

// A child shell may inherit the text of the hook and never its function.
constexpr std::string_view kHook = "${_berth_leases:+_berth_prompt}";

constexpr std::string_view kBourneDispatch = R"sh(_berth_prompt() {{
{}  eval "set -- $_berth_leases"
  _berth_leases=
  while [ $# -gt 0 ]; do
    "$1" || _berth_leases="$_berth_leases $1"
    shift
  done
}}
)sh";

constexpr std::string_view kBashHooks = R"sh(case "${{PROMPT_COMMAND-}}" in *_berth_prompt*) ;;
*) PROMPT_COMMAND="${{PROMPT_COMMAND:+$PROMPT_COMMAND
}}"'{0}' ;;
esac
[ -n "$(trap -p URG)" ] || trap '{0}' URG
)sh";

constexpr std::string_view kZshHooks = R"sh(typeset -ga precmd_functions preexec_functions
case " ${precmd_functions[*]} " in *' _berth_prompt '*) ;;
*) precmd_functions+=(_berth_prompt); preexec_functions+=(_berth_prompt) ;;
esac
)sh";

constexpr std::string_view kFishDispatch =
    R"sh(function _berth_prompt --on-event fish_prompt --on-event fish_preexec
    set -l leases $_berth_leases
    set -g _berth_leases
    for lease in $leases
        eval $lease; or set -a _berth_leases $lease
    end
end
)sh";

std::string assignment(ShellKind shell, const std::string& name, const std::optional<std::string>& value) {
  if (shell == ShellKind::fish)
    return value ? fmt::format("set -gx {} {}", name, quoted(shell, *value)) : fmt::format("set -e {}", name);
  return value ? fmt::format("export {}={}", name, quoted(shell, *value)) : fmt::format("unset {}", name);
}

// True where it is still what the claim has made of it.
std::string is_as_claimed(ShellKind shell, const ClaimedVariable& variable) {
  const std::string& name = variable.name;
  if (shell == ShellKind::fish)
    return variable.value ? fmt::format("test \"${}\" = {}", name, quoted(shell, *variable.value))
                          : fmt::format("not set -q {}", name);
  return variable.value ? fmt::format("[ \"${{{}-}}\" = {} ]", name, quoted(shell, *variable.value))
                        : fmt::format("[ -z \"${{{}+x}}\" ]", name);
}

std::string what_happened(const ClaimScript& claim) {
  const ClaimedVariable& mask = claim.variables.front();
  return fmt::format("berth: the lease {} has ended: {} is {}", claim.name, mask.name,
                     mask.before ? fmt::format("{} again", *mask.before) : "cleared");
}

std::string function_of(const ClaimScript& claim) {
  return "_berth_lease_" + claim.lease;
}

std::string restored(ShellKind shell, const ClaimScript& claim) {
  std::string lines;
  for (const ClaimedVariable& variable : claim.variables) {
    if (variable.value == variable.before) continue;
    const std::string back = assignment(shell, variable.name, variable.before);
    lines += shell == ShellKind::fish
                 ? fmt::format("        {}; and {}\n", is_as_claimed(shell, variable), back)
                 : fmt::format("    {} && {}\n", is_as_claimed(shell, variable), back);
  }
  return lines;
}

std::string bourne_hook(ShellKind shell, const ClaimScript& claim) {
  const std::string function = function_of(claim);
  std::string text = fmt::format("case $- in *i*)\n{}() {{\n  local line=\n", function);
  // A zombie is gone too: in a container it may stay for as long as that.
  text += fmt::format(
      "  [ -e {0} ] && {{ IFS= read -r line </proc/{1}/stat; }} 2>/dev/null\n"
      "  case $line in '{1} ({2}) '[!ZX]*) return 1 ;; esac\n",
      quoted(shell, claim.ticket), claim.keeper, claim.keeper_name);
  text += fmt::format("  if {}; then\n{}    printf '%s\\n' {} >&2\n",
                      is_as_claimed(shell, claim.variables.back()), restored(shell, claim),
                      quoted(shell, what_happened(claim)));
  text += fmt::format("  elif [ -n \"$_berth_leases\" ]; then\n    return 1\n  fi\n  unset -f {}\n}}\n",
                      function);
  text += fmt::format("_berth_leases=\"{} ${{_berth_leases-}}\"\n", function);
  const bool zsh = shell == ShellKind::zsh;
  text += fmt::format(kBourneDispatch, zsh ? "  emulate -L sh\n" : "");
  text += zsh ? std::string(kZshHooks) : fmt::format(kBashHooks, kHook);
  return text + ";;\nesac\n";
}

std::string fish_hook(const ClaimScript& claim) {
  constexpr ShellKind kFish = ShellKind::fish;
  const std::string function = function_of(claim);
  std::string text = fmt::format("if status is-interactive\nfunction {}\n", function);
  text += fmt::format(
      "    if test -e {0}; and test -r /proc/{1}/stat\n"
      "        read -l line </proc/{1}/stat\n"
      "        string match -qr '^{1} \\({2}\\) [^ZX]' -- $line; and return 1\n"
      "    end\n",
      quoted(kFish, claim.ticket), claim.keeper, claim.keeper_name);
  text += fmt::format("    if {}\n{}        echo {} >&2\n", is_as_claimed(kFish, claim.variables.back()),
                      restored(kFish, claim), quoted(kFish, what_happened(claim)));
  text += fmt::format(
      "    else if test -n \"$_berth_leases\"\n        return 1\n    end\n    functions -e {}\nend\n",
      function);
  text += fmt::format("set -g _berth_leases {} $_berth_leases\n{}end\n", function, kFishDispatch);
  return text;
}

}  // namespace

std::string quoted(ShellKind shell, std::string_view word) {
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string_view::npos) return std::string(word);
  if (shell != ShellKind::fish) return in_shell_quotes(word);
  std::string text(word);
  replace_all(text, "\\", "\\\\");
  replace_all(text, "'", "\\'");
  return "'" + text + "'";
}

std::string claim_script(ShellKind shell, const ClaimScript& claim) {
  std::string text;
  for (const ClaimedVariable& variable : claim.variables) {
    if (variable.value || variable.before) text += assignment(shell, variable.name, variable.value) + "\n";
  }
  if (shell == ShellKind::other) return text;
  return text + (shell == ShellKind::fish ? fish_hook(claim) : bourne_hook(shell, claim));
}

}  // namespace berth::supervise
