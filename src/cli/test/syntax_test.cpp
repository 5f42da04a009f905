#include "berth/command/command.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <optional>

#include "berth/cli/commands.h"
#include "berth/cli/driver.h"
#include "berth/cli/invocation.h"

namespace berth::cli::syntax_test {
namespace {

struct Words {
  explicit Words(std::vector<std::string> texts) : storage(std::move(texts)) {
    for (std::string& text : storage) pointers.push_back(text.data());
  }
  std::vector<std::string> storage;
  std::vector<char*> pointers;
};

struct Probe {
  std::string text;
  std::string optional = "unset";
  bool flag = false;
  command::Syntax syntax;
  Probe() {
    syntax.option("", "text", "TEXT", "", command::text_into(text), 't');
    syntax.option("", "form", "FORM", "", command::text_into(text), 0, {"index", "uuid"});
    syntax.option("", "watch", "[SECS]", "", command::text_into(optional), 'w');
    syntax.option("", "gpus", "[TYPE:]N", "", command::text_into(text), 'G');
    syntax.flag("", "flag", "", flag, 'f');
  }
  Result<command::Parsed> read(std::vector<std::string> texts) {
    Words words(std::move(texts));
    return parse(syntax, "berth x", words.pointers);
  }
};

TEST_CASE("options are read as everywhere: with = or a space, short or long, before or after words") {
  Probe probe;
  probe.syntax.arguments = "[WORD]";
  const auto parsed = probe.read({"a", "--text=x", "--flag", "b"});
  REQUIRE(parsed);
  CHECK(probe.text == "x");
  CHECK(probe.flag);
  CHECK(parsed->words == std::vector<std::string>{"a", "b"});
  CHECK(probe.read({"--text", "y"}));
  CHECK(probe.text == "y");
  CHECK(probe.read({"-tz"}));
  CHECK(probe.text == "z");
  CHECK(probe.read({"-t", "--flag"}));
  CHECK(probe.text == "--flag");
  CHECK(probe.read({"--help"})->help);
  CHECK(probe.read({"-h"})->help);
}

TEST_CASE("letters in a group are read as each by itself, whatever stands before the group") {
  Probe probe;
  CHECK(probe.read({"--form=uuid", "-fty"}));
  CHECK(probe.flag);
  CHECK(probe.text == "y");
  CHECK(probe.read({"--text", "x", "-fw5"}));
  CHECK(probe.optional == "5");
  CHECK(probe.read({"--text=x", "-fh"})->help);
  CHECK(probe.read({"--text=x", "-fq"}).error().message ==
        "unknown option '-q'; `berth x --help` lists them");
  CHECK(probe.read({"--text=x", "-ft"}).error().message == "--text needs a value: TEXT");
}

TEST_CASE("a value that may be left out is taken from the next word only if it can be nothing else") {
  Probe probe;
  CHECK(probe.read({"--watch"}));
  CHECK(probe.optional.empty());
  CHECK(probe.read({"--watch", "5"}));
  CHECK(probe.optional == "5");
  CHECK(probe.read({"--watch=7", "--flag"}));
  CHECK(probe.optional == "7");
  CHECK(probe.read({"--watch", "--flag"}));
  CHECK(probe.optional.empty());
  CHECK(probe.read({"-w", "5"}));
  CHECK(probe.optional == "5");
  CHECK(probe.read({"-w", "--flag"}));
  CHECK(probe.optional.empty());
  CHECK(probe.read({"-w7"}));
  CHECK(probe.optional == "7");
  CHECK(probe.read({"-w"}));
  CHECK(probe.optional.empty());
}

TEST_CASE("a number that is a value or an argument is refused, and what is written says which") {
  Probe probe;
  probe.syntax.arguments = "[JOB...]";
  for (const std::string option : {"--watch", "-w"}) {
    const auto parsed = probe.read({option, "12"});
    REQUIRE(!parsed);
    CHECK(parsed.error().message ==
          "--watch 12: 12 can be the value of --watch or an argument: write --watch=12, or `berth x 12 "
          "--watch`");
    CHECK_FALSE(probe.read({option, "12.7"}));
    CHECK(probe.read({"12", option})->words == std::vector<std::string>{"12"});
    CHECK(probe.optional.empty());
  }
  CHECK(probe.read({"--watch=12", "7"})->words == std::vector<std::string>{"7"});
  CHECK(probe.optional == "12");
  CHECK(probe.read({"-w5", "7"})->words == std::vector<std::string>{"7"});
  CHECK(probe.optional == "5");
  CHECK(probe.read({"--watch", "5s", "7"})->words == std::vector<std::string>{"7"});
  CHECK(probe.optional == "5s");
  // What stands behind it can only be a command.
  probe.syntax.options_end_at_first_word = true;
  CHECK(probe.read({"--watch", "12", "ls"})->words == std::vector<std::string>{"ls"});
  CHECK(probe.optional == "12");
}

TEST_CASE("a value of which a part may be left out is needed all the same") {
  Probe probe;
  CHECK(probe.read({"--gpus", "a100:2"}));
  CHECK(probe.text == "a100:2");
  CHECK(probe.read({"-G", "2"}));
  CHECK(probe.text == "2");
  CHECK(probe.read({"--gpus"}).error().message == "--gpus needs a value: [TYPE:]N");
}

TEST_CASE("help says how a value is written that may be left out") {
  const std::string help = help_text(Probe().syntax, "berth x", "");
  CHECK(help.contains("--watch[=SECS]"));
  CHECK(help.contains("--gpus [TYPE:]N"));
  CHECK(help.contains("--text TEXT"));
}

TEST_CASE("the help of --source names each source there is") {
  std::optional<std::string> sim;
  const Row* row = find_row("list");
  const auto command = row->make();
  const command::Syntax syntax = full_syntax(*row, *command, sim);
  const auto option = std::ranges::find(syntax.options, "source", &command::Option::name);
  REQUIRE(option != syntax.options.end());
  REQUIRE(option->choices.size() > 2);
  for (const std::string_view name : option->choices) CHECK(option->help.contains(name));
}

TEST_CASE("options end at the first word where the rest is a command") {
  Probe probe;
  probe.syntax.arguments = "COMMAND";
  probe.syntax.options_end_at_first_word = true;
  CHECK(probe.read({"--flag", "ls", "--text", "x"})->words == std::vector<std::string>{"ls", "--text", "x"});
  CHECK(probe.read({"--", "--flag"})->words == std::vector<std::string>{"--flag"});
}

TEST_CASE("what is wrong is named, with what is allowed") {
  struct Row {
    std::vector<std::string> words;
    const char* message;
  };
  for (const Row& row :
       {Row{{"--flog"}, "unknown option '--flog', did you mean --flag?; `berth x --help` lists them"},
        Row{{"--nonsense=3"}, "unknown option '--nonsense=3'; `berth x --help` lists them"},
        Row{{"--fla"}, "unknown option '--fla', did you mean --flag?; `berth x --help` lists them"},
        Row{{"-q"}, "unknown option '-q'; `berth x --help` lists them"},
        Row{{"--text"}, "--text needs a value: TEXT"}, Row{{"--form"}, "--form needs a value: index, uuid"},
        Row{{"-t"}, "--text needs a value: TEXT"}, Row{{"--flag=1"}, "--flag takes no value"},
        Row{{"--form", "name"}, "--form name: must be one of index, uuid"},
        Row{{"word"}, "unexpected argument 'word': `berth x` takes options only"}}) {
    const auto parsed = Probe().read(row.words);
    REQUIRE(!parsed);
    CHECK(parsed.error().code == ErrorCode::usage);
    CHECK(parsed.error().message == row.message);
  }
}

TEST_CASE("help shows every option of every command within 80 columns") {
  std::optional<std::string> sim;
  for (const Row& row : rows()) {
    const auto command = row.make();
    const command::Syntax syntax = full_syntax(row, *command, sim);
    const std::string text = help_text(syntax, full_name(row), row.summary);
    for (const command::Option& each : syntax.options)
      CHECK(text.find("--" + std::string(each.name)) != std::string::npos);
    for (std::size_t at = 0; at < text.size(); at = text.find('\n', at) + 1) {
      CHECK_MESSAGE(text.find('\n', at) - at <= 80, text.substr(at, text.find('\n', at) - at));
    }
  }
}

TEST_CASE("no two commands and no two options of a command have the same name") {
  std::optional<std::string> sim;
  for (const Row& row : rows()) {
    CHECK(find_row(row.name) == &row);
    if (!row.alias.empty()) CHECK(find_row(row.alias) == &row);
    const auto command = row.make();
    const command::Syntax syntax = full_syntax(row, *command, sim);
    for (const command::Option& each : syntax.options) {
      CHECK(std::ranges::count(syntax.options, each.name, &command::Option::name) == 1);
      CHECK((each.letter == 0 ||
             std::ranges::count(syntax.options, each.letter, &command::Option::letter) == 1));
      CHECK(each.name != "help");
    }
  }
}

// Another reader would mean something else by it. Slurm has units of its own.
TEST_CASE("no command takes a size or a time without its unit") {
  std::optional<std::string> sim;
  std::size_t asked = 0;
  for (const Row& row : rows()) {
    if (row.name == "sbatch") continue;
    const auto command = row.make();
    const command::Syntax syntax = full_syntax(row, *command, sim);
    for (const command::Option& each : syntax.options) {
      if (each.value != "SIZE" && each.value != "TIME" && each.value != "[TIME]") continue;
      // Whoever has the history reads this one.
      if (row.name == "simulate" && each.name == "since") continue;
      CAPTURE(row.name);
      CAPTURE(each.name);
      const auto set = each.set("7");
      REQUIRE_FALSE(set);
      CHECK(set.error().message.starts_with("7 of what? write 7"));
      ++asked;
    }
  }
  CHECK(asked > 30);
}

TEST_CASE("--sim is taken out of our words and left in the command's") {
  Words words({"--sim", "8xH100", "run", "--sim=x", "-n", "2", "cmd", "--sim", "y"});
  const auto rest = without_simulation(words.pointers, 3);
  const std::vector<std::string> texts(rest.begin(), rest.end());
  CHECK(texts == std::vector<std::string>{"run", "-n", "2", "cmd", "--sim", "y"});
}

}  // namespace
}  // namespace berth::cli::syntax_test
