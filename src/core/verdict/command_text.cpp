#include "berth/verdict/command_text.h"

#include <algorithm>
#include <array>

#include "berth/base/text_match.h"
#include "berth/verdict/outsiders.h"

namespace berth {
namespace {

constexpr std::string_view kHidden = "***";

/// "--api-key", "HF_TOKEN", "db.password": whether what belongs to this name is nobody else's
/// business.
bool names_secret(std::string_view word) {
  constexpr std::array<std::string_view, 7> kSecret{"key",    "token",      "secret",    "password",
                                                    "passwd", "passphrase", "credential"};
  const std::string name = lowered(word);
  return std::ranges::any_of(kSecret, [&](std::string_view secret) {
    const std::size_t at = name.rfind(secret);
    if (at == std::string::npos) return false;
    // "--tokenizer" and "--max-tokens" are about language.
    const std::string_view rest = std::string_view(name).substr(at + secret.size());
    const bool is_of_language =
        rest.starts_with("iz") || (rest == "s" && name.find("max") != std::string::npos);
    return secret != "token" || !is_of_language;
  });
}

/// "https://user:password@host"
std::string without_login(std::string_view word) {
  const std::size_t scheme = word.find("://");
  if (scheme == std::string_view::npos) return std::string(word);
  const std::size_t begin = scheme + 3;
  const std::string_view authority = word.substr(begin, word.find('/', begin) - begin);
  const std::size_t login = authority.rfind('@');
  if (login == std::string_view::npos) return std::string(word);
  return std::string(word.substr(0, begin)) + std::string(kHidden) + std::string(word.substr(begin + login));
}

/// Goes through a command word by word.
class SecretMask {
 public:
  std::string told(std::string_view word) {
    if (hides_next_ && !word.starts_with('-')) {
      hides_next_ = lowered(word) == "bearer" || lowered(word) == "basic";
      return std::string(hides_next_ ? word : kHidden);
    }
    hides_next_ = false;
    for (const char sign : {'=', ':'}) {
      const std::size_t end = word.find(sign);
      if (end == std::string_view::npos || !names_secret(word.substr(0, end))) continue;
      hides_next_ = end + 1 == word.size();
      return std::string(word.substr(0, end + 1)) + (hides_next_ ? "" : std::string(kHidden));
    }
    const std::string name = lowered(word);
    hides_next_ =
        (word.starts_with('-') && word.find_first_of("=:") == std::string_view::npos && names_secret(word)) ||
        name.ends_with("authorization:") || name == "bearer";
    return without_login(word);
  }

 private:
  bool hides_next_ = false;
};

std::string program_of(std::string_view command) {
  std::string_view program = command.substr(0, command.find(' '));
  program.remove_prefix(std::min(program.rfind('/') + 1, program.size()));
  return std::string(program);
}

}  // namespace

std::string told_command(std::string_view command, CommandVisibility telling) {
  if (telling == CommandVisibility::none) return {};
  if (telling == CommandVisibility::program) return program_of(command);
  std::string text;
  SecretMask mask;
  for (std::size_t at = 0; at < command.size();) {
    const std::size_t end = std::min(command.find(' ', at), command.size());
    text += mask.told(command.substr(at, end - at));
    if (end < command.size()) text += ' ';
    at = end + 1;
  }
  return text;
}

void tell_commands(Facts& facts, Ledger& ledger, std::optional<std::uint32_t> own) {
  const CommandVisibility telling = facts.policy.commands;
  for (Device& device : facts.snapshot.devices) {
    if (!device.processes) continue;
    for (Process& process : *device.processes) {
      if (own && process.uid == *own) continue;
      const bool is_known = telling == CommandVisibility::none && is_ignored(process, facts.policy);
      process.command = told_command(process.command, is_known ? CommandVisibility::program : telling);
    }
  }
  for (std::vector<Ticket>* tickets : {&ledger.tickets, &ledger.ended}) {
    for (Ticket& ticket : *tickets) {
      if (!own || ticket.uid != *own) ticket.command = told_command(ticket.command, telling);
    }
  }
}

}  // namespace berth
