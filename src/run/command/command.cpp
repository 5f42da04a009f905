#include "berth/command/command.h"

#include <getopt.h>

#include <algorithm>
#include <array>

#include "berth/base/text.h"
#include "berth/slurm/sbatch_options.h"
#include "berth/view/text.h"

// The parser is getopt_long of the C library. Measured beside CLI11 with the twenty options of
// `pick`: 31 thousand instructions against 438 thousand, and a program an eighth the size. A pick
// as a whole is a few million.
namespace berth::command {
namespace {

constexpr int kFirstLong = 256;  // above every letter
constexpr std::string_view kHelp = "help";
constexpr std::size_t kHelpWidth = 80;
constexpr std::size_t kMostShown = 100;  // bytes of a value that is refused
constexpr std::size_t kHelpColumn = 26;  // where the text beside an option begins

struct Getopt {
  std::string letters;
  std::vector<std::string> names;
  std::vector<option> longs;
};

Getopt getopt_tables(const Syntax& syntax) {
  Getopt tables;
  // "+" stops at the first word that is no option; ":" tells a missing value from an unknown
  // option.
  tables.letters = syntax.options_end_at_first_word ? "+:h" : ":h";
  tables.names.reserve(syntax.options.size() + 1);
  const auto add = [&](std::string_view name, int has_argument, int code) {
    tables.names.emplace_back(name);
    tables.longs.push_back({tables.names.back().c_str(), has_argument, nullptr, code});
  };
  for (std::size_t i = 0; i < syntax.options.size(); ++i) {
    const Option& each = syntax.options[i];
    const bool optional = each.has_optional_value();
    add(each.name,
        each.value.empty() ? no_argument
        : optional         ? optional_argument
                           : required_argument,
        kFirstLong + static_cast<int>(i));
    if (each.letter == 0) continue;
    tables.letters += each.letter;
    tables.letters += each.value.empty() ? "" : optional ? "::" : ":";
  }
  add(kHelp, no_argument, kFirstLong + static_cast<int>(syntax.options.size()));
  tables.longs.push_back({nullptr, 0, nullptr, 0});
  return tables;
}

const Option* option_of(const Syntax& syntax, int code) {
  if (code >= kFirstLong) {
    const auto place = static_cast<std::size_t>(code - kFirstLong);
    return place < syntax.options.size() ? &syntax.options[place] : nullptr;  // or --help
  }
  const auto found = std::ranges::find(syntax.options, static_cast<char>(code), &Option::letter);
  return found == syntax.options.end() ? nullptr : &*found;
}

std::string spelled(const Option& each) {
  return fmt::format("--{}", each.name);
}

/// The habit of others that this option is: with this value, or with any.
const Habit* habit_of_option(std::span<const Habit> habits, std::string_view name, std::string_view value) {
  const auto found = [habits](std::string_view word) {
    const auto at = std::ranges::find(habits, word, &Habit::word);
    return at == habits.end() ? nullptr : &*at;
  };
  const Habit* const with_value = found(fmt::format("{}={}", name, value));
  return with_value != nullptr ? with_value : found(name);
}

/// "did you mean -n (--count)?": people know the number of GPUs by its letter.
std::string meant_in_words(std::string_view meant) {
  return fmt::format(", did you mean {}?", meant == "--count" ? "-n (--count)" : meant);
}

/// Docker names devices in the option for their number.
std::optional<std::string> devices_of_docker(std::string_view name, std::string_view value) {
  constexpr std::string_view kDevices = "device=";
  while (value.starts_with('"')) value.remove_prefix(1);
  while (value.ends_with('"')) value.remove_suffix(1);
  if (name != "--gpus" || !value.starts_with(kDevices)) return std::nullopt;
  value.remove_prefix(kDevices.size());
  return fmt::format("--gpus {}{} is Docker's: write --devices {}", kDevices, printable(value),
                     printable(value));
}

/// `following`: what stands after it, if it may be its value.
std::unexpected<Error> unknown_option(const Syntax& syntax, std::string_view command, std::string_view word,
                                      std::string_view following) {
  std::vector<std::string> known;
  for (const Option& each : syntax.options) known.push_back(spelled(each));
  const std::vector<std::string_view> views(known.begin(), known.end());
  const std::size_t equals = word.find('=');
  const std::string_view name = word.substr(0, equals);
  const std::string_view value = equals == std::string_view::npos ? following : word.substr(equals + 1);
  // Where GPUs are asked for, people bring the words of other tools that run something.
  const bool asks = std::ranges::find(views, "--count") != views.end();
  const bool runs = asks && syntax.options_end_at_first_word;
  const Habit* of_looking = runs ? nullptr : habit_of_option(looking_habits(), name, value);
  // "All are shown" is true of what lists.
  constexpr auto kLists = std::to_array<std::string_view>(
      {"berth", "berth list", "berth queue", "berth jobs", "berth top", "berth usage"});
  if (of_looking != nullptr && of_looking->is_of_lists && std::ranges::find(kLists, command) == kLists.end())
    of_looking = nullptr;
  const Habit* const habit =
      of_looking == nullptr && asks ? habit_of_option(habits(), name, value) : of_looking;
  const bool is_known = habit != nullptr && std::ranges::find(views, habit->meant) != views.end();
  if (habit != nullptr && !is_known && !habit->advice.empty())
    return fail(ErrorCode::usage, "{} {}", printable(name), habit->advice);
  const bool is_of_looking = of_looking != nullptr && is_known;
  if (asks && !is_of_looking) {
    if (const auto devices = devices_of_docker(name, value)) return fail(ErrorCode::usage, *devices);
    if (const auto ours = ours_for_slurm(name, value, views)) return fail(ErrorCode::usage, *ours);
  }
  const std::string_view meant = is_known ? habit->meant : nearest_word(name, views);
  return fail(ErrorCode::usage, "unknown option '{}'{}; `{} --help` lists them", printable(word),
              meant.empty() ? std::string() : meant_in_words(meant), command);
}

std::string_view word_at(std::span<char*> arguments, int place) {
  const auto at = static_cast<std::size_t>(place);
  return at < arguments.size() && arguments[at] != nullptr ? std::string_view(arguments[at]) : "";
}

std::string_view value_in(std::string_view word) {
  return word.starts_with('-') ? "" : word;
}

std::unexpected<Error> needs_value(const Option& each) {
  return fail(
      ErrorCode::usage, "{} needs a value: {}", spelled(each),
      each.choices.empty() ? std::string(each.value) : fmt::format("{}", fmt::join(each.choices, ", ")));
}

/// The error that getopt means by '?' or ':'. `word` is what it choked on.
std::unexpected<Error> refused(const Syntax& syntax, std::string_view command, int code,
                               std::string_view word, std::span<char*> arguments) {
  const Option* each = optopt == 0 ? nullptr : option_of(syntax, optopt);
  if (code == ':' && each != nullptr) return needs_value(*each);
  if (each != nullptr) return fail(ErrorCode::usage, "{} takes no value", spelled(*each));
  if (optopt != 0 && optopt < kFirstLong) {
    const std::string letter = fmt::format("-{}", static_cast<char>(optopt));
    const std::string_view next = word_at(arguments, optind);
    // A group of letters may be one word elsewhere.
    if (habit_of(next) != nullptr) return unknown_option(syntax, command, next, "");
    return unknown_option(syntax, command, letter,
                          next.starts_with(letter) ? next.substr(2) : value_in(next));
  }
  return unknown_option(syntax, command, word, value_in(word_at(arguments, optind)));
}

/// As the user wrote it, but not all of what fills a screen.
std::string with_value(const Option& each, std::string_view value) {
  if (value.empty()) return spelled(each);
  const std::string shown(shortened(value, kMostShown));
  return fmt::format("{} {}{}", spelled(each), printable(shown), shown.size() < value.size() ? "…" : "");
}

Result<void> apply(const Option& each, std::string_view value) {
  if (!each.choices.empty() && std::ranges::find(each.choices, value) == each.choices.end()) {
    return fail(ErrorCode::usage, "{}: must be one of {}", with_value(each, value),
                fmt::join(each.choices, ", "));
  }
  auto result = each.set(value);
  if (result) return result;
  return fail(result.error().code, "{}: {}", with_value(each, value), result.error().message);
}

/// The word that getopt has just taken a long option from. Within a group of letters it is the one
/// before.
std::string_view last_word(std::span<char*> arguments) {
  const auto last = static_cast<std::size_t>(optind) - 1;
  return optarg == arguments[last] && last > 0 ? arguments[last - 1] : arguments[last];
}

bool is_whole_name(std::string_view word, std::string_view name) {
  return word.substr(2, word.find('=') - 2) == name;
}

/// An optional value may also follow as a word of its own, when it cannot be anything else: a
/// number. Error: it could also be what the command is about, as a job.
Result<void> take_optional_value(const Syntax& syntax, std::string_view command, const Option& each,
                                 std::span<char*> arguments) {
  if (!each.has_optional_value() || optarg != nullptr) return {};
  const std::string_view next = word_at(arguments, optind);
  if (next.empty() || next.front() < '0' || next.front() > '9') return {};
  const bool may_be_argument = !syntax.arguments.empty() && !syntax.options_end_at_first_word &&
                               next.find_first_not_of("0123456789.") == std::string_view::npos;
  if (may_be_argument)
    return fail(ErrorCode::usage,
                "{0} {1}: {1} can be the value of {0} or an argument: write {0}={1}, or `{2} {1} {0}`",
                spelled(each), next, command);
  optarg = arguments[static_cast<std::size_t>(optind)];
  ++optind;
  return {};
}

}  // namespace

Result<Parsed> parse(const Syntax& syntax, std::string_view command, std::span<char*> words) {
  const Getopt tables = getopt_tables(syntax);
  // getopt skips the program's name, and wants argv's closing null.
  std::string name(command);
  std::vector<char*> storage{name.data()};
  storage.insert(storage.end(), words.begin(), words.end());
  storage.push_back(nullptr);
  const std::span<char*> arguments(storage.data(), words.size() + 1);
  opterr = 0;
  optind = 0;  // 0, not 1: forgets the state of an earlier call

  while (true) {
    const int code = getopt_long(static_cast<int>(arguments.size()), storage.data(), tables.letters.c_str(),
                                 tables.longs.data(), nullptr);
    if (code == -1) break;
    const std::string_view word = last_word(arguments);
    if (code == '?' || code == ':') return refused(syntax, command, code, word, arguments);
    const Option* each = option_of(syntax, code);
    if (code >= kFirstLong && !is_whole_name(word, each == nullptr ? kHelp : each->name))
      return unknown_option(syntax, command, word, "");
    if (each == nullptr) return Parsed{.help = true, .words = {}};
    // Left out before the command, of which -- is no word.
    const bool is_word = optarg != nullptr && optarg == arguments[static_cast<std::size_t>(optind) - 1];
    if (!each->value.empty() && is_word && std::string_view(optarg) == "--") return needs_value(*each);
    BERTH_DO(take_optional_value(syntax, command, *each, arguments));
    if (auto result = apply(*each, optarg == nullptr ? "" : optarg); !result) {
      return std::unexpected(result.error());
    }
  }
  Parsed parsed;
  for (auto i = static_cast<std::size_t>(optind); i < arguments.size(); ++i)
    parsed.words.emplace_back(arguments[i]);
  if (!parsed.words.empty() && syntax.arguments.empty()) {
    return fail(ErrorCode::usage, "unexpected argument '{}': `{}` takes options only",
                printable(parsed.words.front()), command);
  }
  return parsed;
}

Result<Parsed> parse(const Syntax& syntax, std::string_view command, std::vector<std::string> words) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  return parse(syntax, command, std::span(pointers));
}

std::string argument_of(const Option& option) {
  if (option.value.empty()) return "";
  return option.has_optional_value() ? fmt::format("[={}", option.value.substr(1))
                                     : fmt::format(" {}", option.value);
}

void note_words(std::span<Option> options, std::vector<std::string>& given) {
  for (Option& option : options) {
    option.set = [set = std::move(option.set), name = option.name, flag = option.value.empty(),
                  optional = option.has_optional_value(), &given](std::string_view value) -> Result<void> {
      BERTH_DO(set(value));
      given.push_back(flag || (optional && value.empty()) ? fmt::format("--{}", name)
                                                          : fmt::format("--{}={}", name, value));
      return {};
    };
  }
}

std::string options_with_value(const Syntax& syntax) {
  std::string names;
  for (const Option& each : syntax.options) {
    if (each.value.empty() || each.has_optional_value()) continue;
    names += fmt::format("{}{}", names.empty() ? "" : " ", spelled(each));
    if (each.letter != 0) names += fmt::format(" -{}", each.letter);
  }
  return names;
}

std::string flowed(std::string_view text) {
  std::string lines;
  while (!text.empty()) {
    const std::size_t end = text.find("\n\n");
    const std::string_view paragraph = text.substr(0, end);
    lines += "\n";
    lines += paragraph.starts_with(' ') ? std::string(paragraph) : view::wrapped(paragraph, kHelpWidth, 0);
    lines += "\n";
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 2);
  }
  return lines;
}

std::string help_text(const Syntax& syntax, std::string_view command, std::string_view summary) {
  std::string text = fmt::format("{}: {}\n\nusage: {}{}{}{}\n", command, summary, command,
                                 syntax.options.empty() ? "" : " [OPTIONS]",
                                 syntax.arguments.empty() ? "" : " ", syntax.arguments);
  text += flowed(syntax.about);
  std::string_view group;
  for (const Option& each : syntax.options) {
    if (each.group != group) text += fmt::format("\n{}:\n", group = each.group);
    const std::string letter = each.letter == 0 ? "    " : fmt::format("-{}, ", each.letter);
    const std::string names = fmt::format("{}--{}{}", letter, each.name, argument_of(each));
    // A name that reaches into the column has its help below.
    const std::string below = names.size() < kHelpColumn - 2 ? "" : fmt::format("\n{:{}}", "", kHelpColumn);
    text += fmt::format("  {:<{}}{}{}\n", names, kHelpColumn - 2, below,
                        view::wrapped(each.help, kHelpWidth, kHelpColumn));
  }
  return text;
}

void Syntax::flag(std::string_view group, std::string_view name, std::string_view help, bool& flag,
                  char letter) {
  const auto raise = [&flag](std::string_view) -> Result<void> {
    flag = true;
    return {};
  };
  option(group, name, "", help, raise, letter);
}

void Syntax::text(std::string_view group, std::string_view name, std::string_view value,
                  std::string_view help, std::string& text) {
  option(group, name, value, help, text_into(text));
}

SetOption text_into(std::string& text) {
  return [&text](std::string_view value) -> Result<void> {
    text = value;
    return {};
  };
}

}  // namespace berth::command
