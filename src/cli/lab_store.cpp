// `berth store status`: what the agent of this machine knows of the lab queue. If etcd itself has
// to be asked, berth-serve does so, since it has an HTTP client.
#include <fmt/format.h>

#include "berth/base/printable.h"
#include "berth/cli/lab_store_options.h"
#include "berth/cli/serve_options.h"
#include "berth/command/command.h"
#include "berth/command/environment.h"
#include "berth/command/serve_program.h"
#include "berth/hosts/lab_agent_link.h"
#include "berth/hosts/lab_hosts.h"

namespace berth::cli {
namespace {

command::Output told_of_store(const std::vector<hosts::AgentLine>& all) {
  command::Output output;
  std::string machines;
  for (const auto& [word, rest] : all) {
    const std::string what = printable(rest);
    if (word == "store") {
      output.out += fmt::format("store     {}\n", what);
    } else if (word == "name") {
      output.out += fmt::format("this host {}\n", what);
    } else if (word == "silent") {
      output.out += fmt::format("problem   it does not answer: {}\n", what);
      output.status = 1;
    } else if (word == "waiting") {
      output.out += fmt::format("waiting   {}\n", what);
    } else if (word == "alive") {
      const std::size_t space = what.find(' ');
      machines += fmt::format("alive     {} (berth {})\n", what.substr(0, space),
                              space == std::string::npos ? "?" : what.substr(space + 1));
    }
  }
  output.out += machines;
  return output;
}

constexpr std::string_view kStatus = "status";

constexpr std::string_view kStoreAbout =
    "status asks the agent of this machine: whether the store of the lab answers, how many requests wait in "
    "the queue of the lab, and which machines have been heard of in the last 30 s. It takes no option. "
    "It ends with 1 if the store does not answer.\n\n"
    "doctor asks etcd itself: whether each member answers, whether its version keeps what it has, and "
    "whether the agents may read and write the queue. It says what is wrong and what to do about it, and "
    "changes nothing. It ends with 1 if something is wrong that stops the queue.";

class Store : public command::Command {
 public:
  void syntax(command::Syntax& syntax) override { syntax = store_syntax(options_); }

  Result<command::Output> run(command::Environment& environment, const command::Words& words) override {
    if (words.size() != 1) return fail(ErrorCode::usage, "what of the store? `berth store status` or doctor");
    if (words.front() != kStatus)
      return std::unexpected(
          command::become_berth_serve(command::kStoreWord, environment.words().subspan(1)));
    BERTH_LET(const auto socket, hosts::lab_store_socket());
    if (socket.empty())
      return fail(ErrorCode::usage,
                  "this machine has no store: the site file names none (store = "
                  "\"/run/berth-serve/store.sock\")");
    BERTH_LET(const auto all, hosts::ask_agent(socket, "status"));
    return told_of_store(all);
  }

 private:
  StoreOptions options_;
};

}  // namespace

command::Syntax store_syntax(StoreOptions& options) {
  command::Syntax syntax;
  syntax.about = kStoreAbout;
  syntax.arguments = "status|doctor";
  syntax.words = {kStatus, "doctor"};
  syntax.text("Options", "config", "FILE",
              "where the store is, from the file of an agent (`berth serve --config FILE`)",
              options.config_file);
  syntax.flag("Options", "json", "as JSON (docs/schema/doctor.json)", options.json);
  add_store_access_options(syntax, options.store);
  return syntax;
}

BERTH_COMMAND(make_store, Store);

}  // namespace berth::cli
