// The row of `berth serve` in the table of commands. The server is a program of its own (CMakeLists.txt says
// why), which reads the same options again.
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>

#include "berth/cli/command.h"
#include "berth/cli/serve_options.h"
#include "berth/sys/system_error.h"

namespace berth::cli {
namespace {

class Serve : public Command {
 public:
  Syntax syntax() override { return serve_syntax(settings_, config_file_); }

  Result<Output> run(Environment& environment, const std::vector<std::string>&) override {
    const auto self = own_path();
    if (!self) return std::unexpected(self.error());
    const std::string program = self->substr(0, self->rfind('/')) + "/berth-serve";
    std::string name = "berth-serve";
    std::vector<char*> arguments{name.data()};
    const auto words = environment.words().subspan(1);
    arguments.insert(arguments.end(), words.begin(), words.end());
    arguments.push_back(nullptr);
    ::execv(program.c_str(), arguments.data());
    if (errno == ENOENT) {
      return fail(ErrorCode::failure, program +
                                          " is missing: the tarball and the Debian package have it, the "
                                          "Python package does not");
    }
    return sys::fail_errno(fmt::format("starting {}", program));
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
