// The row of `berth serve` in the table of commands. The server is a program of its own (CMakeLists.txt says
// why), which reads the same options again.
#include "berth/cli/serve_options.h"
#include "berth/command/command.h"
#include "berth/command/serve_program.h"

namespace berth::cli {
namespace {

class Serve : public Command {
 public:
  Syntax syntax() override { return serve_syntax(settings_, config_file_); }

  Result<Output> run(Environment& environment, const std::vector<std::string>&) override {
    return std::unexpected(become_berth_serve("", environment.words().subspan(1)));
  }

 private:
  serve::Settings settings_;
  std::string config_file_;
};

}  // namespace

std::unique_ptr<Command> make_serve() {
  return std::make_unique<Serve>();
}

}  // namespace berth::cli
