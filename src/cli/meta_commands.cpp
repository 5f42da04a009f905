// The commands that only speak of Berth itself.

#include "berth/base/fail.h"
#include "berth/base/version.h"
#include "berth/cli/commands.h"
#include "berth/cli/invocation.h"
#include "berth/view/answers_json.h"

namespace berth::cli {
namespace {

class Version : public command::Command {
 public:
  void syntax(command::Syntax& syntax) override {
    syntax.flag("Options", "json", "as JSON (docs/schema/version.json)", json_);
  }
  Result<command::Output> run(command::Environment&, const command::Words&) override {
    return command::Output{.out =
                               json_ ? view::version_json(version()) : fmt::format("berth {}\n", version())};
  }

 private:
  bool json_ = false;
};

class Help : public command::Command {
 public:
  void syntax(command::Syntax& syntax) override {
    syntax.arguments = "[COMMAND]";
    syntax.flag("Options", "all", "a line for each command", all_);
    for (const Row& row : rows()) {
      if (!row.summary.empty()) syntax.words.push_back(row.name);
    }
  }
  Result<command::Output> run(command::Environment&, const command::Words& words) override {
    if (words.empty()) return command::Output{.out = all_ ? help_on_all() : general_help()};
    const Row* row = find_row(words.front());
    if (row == nullptr || words.size() > 1) {
      return fail(ErrorCode::usage, "there is no command '{}'; `berth help` lists them",
                  fmt::join(words, " "));
    }
    const std::unique_ptr<command::Command> command = row->make();
    std::optional<std::string> sim;
    return command::Output{.out = help_text(full_syntax(*row, *command, sim), full_name(*row), row->summary)};
  }

 private:
  bool all_ = false;
};

}  // namespace

BERTH_COMMAND(make_version, Version);
BERTH_COMMAND(make_help, Help);

}  // namespace berth::cli
