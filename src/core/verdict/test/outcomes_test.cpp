#include "berth/verdict/ledger.h"

#include <doctest/doctest.h>

#include "berth/verdict/test/outcome_stories.h"

namespace berth::outcomes_test {
namespace {

using namespace test;

TEST_CASE("programs are told apart by user, program and script") {
  const auto same = [](std::string_view a, std::string_view b) {
    return fingerprint_of(kAlice, a) == fingerprint_of(kAlice, b);
  };
  CHECK(same("python train.py --lr 0.1", "python train.py --lr 0.2 --name x"));
  CHECK(same("python -u train.py", "python train.py"));
  CHECK(same("sh -c sleep 1; exit 3", "sh -c sleep 2; exit 4"));
  CHECK(same("sh -c python train.py --name a", "sh -c python train.py --name b"));
  CHECK(same("torchrun --nproc-per-node 2 train.py a", "torchrun --nproc-per-node 4 train.py b"));
  CHECK(same("python -m torch.distributed.run x.py", "python -m torch.distributed.run y.py"));
  CHECK_FALSE(same("python train.py", "python eval.py"));
  CHECK_FALSE(same("python train.py", "python3 train.py"));
  CHECK_FALSE(same("sh -c sleep 1; exit 3", "sh -c sleep 1"));
  CHECK_FALSE(same("torchrun train.py", "torchrun eval.py"));
  CHECK_FALSE(same("./a", "./b"));
  CHECK(same("", " "));
  CHECK(fingerprint_of(kAlice, "./a") != fingerprint_of(kBob, "./a"));
}

}  // namespace
}  // namespace berth::outcomes_test
