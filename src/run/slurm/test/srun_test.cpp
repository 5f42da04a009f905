#include "berth/slurm/srun.h"

#include <doctest/doctest.h>

#include "berth/request/request.h"
#include "berth/request/test/said.h"

namespace berth::srun_test {
namespace {

using Words = std::vector<std::string>;

Words said(const SrunWish& wish) {
  auto options = srun_options(wish);
  REQUIRE_MESSAGE(options.has_value(), options.error().message);
  REQUIRE(options->size() >= 2);
  CHECK(Words(options->begin(), options->begin() + 2) == Words{"--nodes=1", "--ntasks=1"});
  return {options->begin() + 2, options->end()};
}

TEST_CASE("srun is told what a request asks for") {
  SrunWish wish;
  CHECK(said(wish) == Words{"--gres=gpu:1"});
  wish.request.count = 2;
  wish.request.conditions = {*filter("name", "a100")};
  wish.request.time_s = 90061;
  CHECK(said(wish) == Words{"--gres=gpu:a100:2", "--time=25:01:01"});
  wish = {};
  wish.wait_s = 1800;
  wish.note = "sweep 3";
  wish.only = {"n1", "n2"};
  wish.without = {"n3"};
  wish.folder = "/data";
  wish.passed_variables = "none";
  wish.on_terminal = true;
  CHECK(said(wish) == Words{"--gres=gpu:1", "--immediate=1800", "--comment=sweep 3", "--nodelist=n1,n2",
                            "--exclude=n3", "--chdir=/data", "--export=NONE", "--pty"});
  wish = {};
  wish.passed_variables = "PATH,LR";
  wish.wait_s = 0;
  CHECK(said(wish) == Words{"--gres=gpu:1", "--immediate=1", "--export=PATH,LR"});
}

TEST_CASE("each row of the table reaches srun, or srun is not asked") {
  for (const RequestField& field : request_fields()) {
    CAPTURE(field.name);
    SrunWish wish;
    wish.request = test::said(field);
    const auto options = srun_options(wish);
    const bool is_asked = field.slurm == SlurmAnswer::kept && field.kind != RequestValue::condition;
    if (field.kind == RequestValue::text_filter || field.kind == RequestValue::seed) continue;
    CHECK(options.has_value() == is_asked);
    if (options) CHECK(*options != *srun_options({}));
  }
}

TEST_CASE("what Slurm cannot be asked for is refused by its name") {
  SrunWish wish;
  std::string named;
  SUBCASE("devices") {
    wish.request.devices = {"0"};
    named = "--devices";
  }
  SUBCASE("exclude") {
    wish.request.exclude = {"0"};
    named = "--exclude";
  }
  SUBCASE("a share") {
    wish.request.shared = true;
    named = "--memory or --shared";
  }
  SUBCASE("processes of others") {
    wish.request.allowed_processes = 1;
    named = "--processes";
  }
  SUBCASE("an order") {
    wish.request.order = Order::coolest;
    named = "--order";
  }
  SUBCASE("yielding") {
    wish.request.yield_s = 30;
    named = "--yield";
  }
  SUBCASE("a condition") {
    wish.request.conditions = {*filter("free", "20G")};
    named = "\"free >= 20G\"";
  }
  SUBCASE("a name that is no type") {
    wish.request.conditions = {*filter("name", "H100 80GB")};
    named = "H100 80GB";
  }
  SUBCASE("two names") {
    wish.request.conditions = {*filter("name", "a"), *filter("name", "b")};
    named = "\"name ~ b\"";
  }
  const auto refused = srun_options(wish);
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().code == ErrorCode::usage);
  CHECK_MESSAGE(refused.error().message.contains(named), refused.error().message);
}

}  // namespace
}  // namespace berth::srun_test
