// The row of `berth serve` in the table of commands. The server is a program of its own
// (CMakeLists.txt says why), which reads the same options again.
#include "berth/cli/serve_options.h"
#include "berth/command/command.h"
#include "berth/command/serve_program.h"

namespace berth::cli {
namespace {

class Serve : public command::Command {
 public:
  void syntax(command::Syntax& syntax) override { syntax = serve_syntax(settings_, config_file_); }

  Result<command::Output> run(command::Environment& environment, const command::Words&) override {
    return std::unexpected(command::become_berth_serve("", environment.words().subspan(1)));
  }

 private:
  http::Settings settings_;
  std::string config_file_;
};

}  // namespace

BERTH_COMMAND(make_serve, Serve);

}  // namespace berth::cli
