#include "berth/view/hosts_table.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <sstream>

#include "berth/verdict/test/machine.h"

namespace berth::view::hosts_table_test {
namespace {

constexpr std::int64_t kNoon = 1'795'262'400;

std::shared_ptr<Host> machine(const std::string& name, unsigned gpus, unsigned leased,
                              const std::string& user) {
  auto report = std::make_shared<HostReport>();
  report->facts = test::machine(gpus);
  for (unsigned i = 0; i < leased; ++i) {
    report->ledger.tickets.push_back(test::lease(i + 1, test::uuid_of(i)));
    report->ledger.tickets.back().user = user;
  }
  report->verdicts = judge(Request(), report->ledger, report->facts).value();
  return std::make_shared<Host>(Host{name, "http://" + name, "", kNoon, std::move(report)});
}

Hosts lab() {
  const auto gone = machine("node03", 4, 1, "bob");
  gone->error = "nobody listens at http://node03:8420; start `berth serve` there";
  gone->seen_s = kNoon - 300;
  const auto unknown = std::make_shared<Host>(Host{.name = "node04", .error = "no\x1b[2J answer"});
  return {machine("node01", 8, 6, "alice"), machine("node02", 2, 1, "bob"), gone, unknown};
}

TEST_CASE("what is free comes first, then a line a machine, then a line a user") {
  CHECK(hosts_table(lab(), {.width = 80, .now_s = kNoon}) ==
        "4 hosts (2 down): 14 GPUs, 3 free\n"
        "3 × A100-SXM4-40GB free on 2 hosts\n"
        "\n"
        "HOST    GPUS              FREE  WAITING  LEASED BY\n"
        "node01  8 A100-SXM4-40GB     2        0  alice 6\n"
        "node02  2 A100-SXM4-40GB     1        0  bob 1\n"
        "node03  4 A100-SXM4-40GB     -        -  down for 5 min\n"
        "node04  -                    -        -  down, never seen\n"
        "\n"
        "node03: nobody listens at http://node03:8420; start `berth serve` there\n"
        "node04: no\\x1b[2J answer\n"
        "\n"
        "USER   GPUS  LEASES  WAITING\n"
        "alice     6       6        0\n"
        "bob       2       2        0\n");
}

TEST_CASE("a host without Berth is a row that grants nothing, and counts nowhere else") {
  const auto bare = std::make_shared<Host>(Host{.name = "desk7", .error = "there is no berth"});
  bare->bare = {{0, "NVIDIA A40", 48ULL << 30U, 30ULL << 30U, 97U},
                {1, "NVIDIA A40", 48ULL << 30U, 0U, 0U},
                {2, "", std::nullopt, std::nullopt, std::nullopt}};
  CHECK(hosts_table({machine("node01", 2, 1, "alice"), bare}, {.width = 80, .now_s = kNoon}) ==
        "2 hosts (1 without Berth): 2 GPUs, 1 free\n"
        "1 × A100-SXM4-40GB free on 1 host\n"
        "\n"
        "HOST    GPUS               FREE  WAITING  LEASED BY\n"
        "node01  2 A100-SXM4-40GB      1        0  alice 1\n"
        "desk7   2 A40 + 1 unknown     -        -  no Berth; 1 of 2 in use\n"
        "\n"
        "desk7: there is no berth. It grants nothing. nvidia-smi there: GPU 0 97 %,\n"
        "  30.0 of 48.0 GiB; GPU 1 0 %, 0.0 of 48.0 GiB; GPU 2 not known\n"
        "\n"
        "USER   GPUS  LEASES  WAITING\n"
        "alice     1       1        0\n");
}

TEST_CASE("no line is wider than the terminal, but for a word of a reason that is") {
  CHECK(rc::check("fits", [](const std::string& name, const std::string& error) {
    const auto host = std::make_shared<Host>(Host{.name = name, .error = error + "!"});
    std::istringstream lines(hosts_table({host, lab()[0]}, {.width = 80, .now_s = kNoon}));
    for (std::string line; std::getline(lines, line);)
      RC_ASSERT(display_width(line) <= 80U ||
                line.find(' ', line.find_first_not_of(' ')) == std::string::npos);
  }));
}

}  // namespace
}  // namespace berth::view::hosts_table_test
