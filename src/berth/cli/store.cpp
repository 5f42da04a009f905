// `berth store status`: what the agent of this machine knows of the line of the lab.
#include <poll.h>

#include <chrono>

#include <fmt/format.h>

#include "berth/cli/anywhere.h"
#include "berth/cli/command.h"
#include "berth/cli/store_link.h"
#include "berth/core/printable.h"

namespace berth::cli {
namespace {

using namespace std::chrono_literals;

constexpr auto kPatienceWithAgent = 10s;

using AgentWords = std::vector<std::vector<std::string>>;

Result<AgentWords> ask_agent(const std::string& socket) {
  BERTH_LET(auto link, StoreLink::open(socket));
  link.send("status");
  AgentWords all;
  const auto until = std::chrono::steady_clock::now() + kPatienceWithAgent;
  while (std::chrono::steady_clock::now() < until) {
    link.attend();
    while (auto words = link.next()) {
      if (words->front() == "end") return all;
      all.push_back(*std::move(words));
    }
    if (link.has_ended()) break;
    pollfd polled{link.descriptor(), link.wants(), 0};
    ::poll(&polled, 1, static_cast<int>(std::chrono::milliseconds(1s).count()));
  }
  return fail(ErrorCode::failure, fmt::format("the agent at {} does not answer; look at its log", socket));
}

Output told_of_store(const AgentWords& all) {
  Output output;
  std::string machines;
  for (const auto& words : all) {
    const std::string what = printable(words.back());
    if (words.front() == "store") {
      output.out += fmt::format("store     {}\n", what);
    } else if (words.front() == "name") {
      output.out += fmt::format("this host {}\n", what);
    } else if (words.front() == "silent") {
      output.out += fmt::format("problem   it does not answer: {}\n", what);
      output.status = 1;
    } else if (words.front() == "waiting") {
      output.out += fmt::format("waiting   {}\n", what);
    } else if (words.front() == "alive") {
      const std::size_t space = what.find(' ');
      machines += fmt::format("alive     {} (berth {})\n", what.substr(0, space),
                              space == std::string::npos ? "?" : what.substr(space + 1));
    }
  }
  output.out += machines;
  return output;
}

class Store : public Command {
 public:
  Syntax syntax() override {
    Syntax syntax;
    syntax.about =
        "Asks the agent of this machine about the store of the lab: whether it answers, how many requests "
        "wait in the "
        "line of the lab, and which hosts have been heard of in the last 30 s. Ends with 1 if the store does "
        "not "
        "answer.";
    syntax.arguments = "status";
    syntax.words = {"status"};
    return syntax;
  }

  Result<Output> run(Environment&, const std::vector<std::string>& words) override {
    if (words != std::vector<std::string>{"status"})
      return fail(ErrorCode::usage, "what of the store? `berth store status`");
    BERTH_LET(const auto socket, lab_store_socket());
    if (socket.empty())
      return fail(ErrorCode::usage,
                  "this machine has no store: the site file names none (store = "
                  "\"/run/berth-serve/store.sock\")");
    BERTH_LET(const auto all, ask_agent(socket));
    return told_of_store(all);
  }
};

}  // namespace

std::unique_ptr<Command> make_store() {
  return std::make_unique<Store>();
}

}  // namespace berth::cli
