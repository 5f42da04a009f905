// The commands that only speak of Berth itself.
#include <fmt/format.h>

#include "berth/base/version.h"
#include "berth/cli/program.h"
#include "berth/command/command.h"
#include "berth/view/json.h"

namespace berth::cli {
namespace {

class Version : public Command {
 public:
  Syntax syntax() override {
    Syntax syntax;
    syntax.options.push_back(
        {"Options", 0, "json", "", "as JSON (docs/schema/version.json)", {}, raise_flag(json_)});
    return syntax;
  }
  Result<Output> run(Environment&, const std::vector<std::string>&) override {
    return Output{.out = json_ ? render::version_json(version()) : fmt::format("berth {}\n", version())};
  }

 private:
  bool json_ = false;
};

class Help : public Command {
 public:
  Syntax syntax() override {
    Syntax syntax;
    syntax.arguments = "[COMMAND]";
    for (const Row& row : rows()) {
      if (!row.summary.empty()) syntax.words.push_back(row.name);
    }
    return syntax;
  }
  Result<Output> run(Environment&, const std::vector<std::string>& words) override {
    if (words.empty()) return Output{.out = general_help()};
    const Row* row = find_row(words.front());
    if (row == nullptr || words.size() > 1) {
      return fail(ErrorCode::usage,
                  fmt::format("there is no command '{}'; `berth help` lists them", fmt::join(words, " ")));
    }
    const std::unique_ptr<Command> command = row->make();
    std::optional<std::string> sim;
    return Output{.out = help_text(full_syntax(*row, *command, sim), full_name(*row), row->summary)};
  }
};

}  // namespace

std::unique_ptr<Command> make_version() {
  return std::make_unique<Version>();
}
std::unique_ptr<Command> make_help() {
  return std::make_unique<Help>();
}

}  // namespace berth::cli
