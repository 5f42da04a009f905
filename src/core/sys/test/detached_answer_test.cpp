#include "berth/sys/job_process.h"

#include <doctest/doctest.h>
#include <pthread.h>

#include <memory>
#include <string>
#include <thread>

namespace berth::sys::detached_answer_test {
namespace {

using namespace std::chrono_literals;

// As long as no machine takes for any of it.
constexpr auto kLong = 60s;

/// Has a size for the stacks of new threads that no memory has.
class NoThreads {
 public:
  NoThreads() {
    ::pthread_getattr_default_np(&before_);
    pthread_attr_t wanted = before_;
    ::pthread_attr_setstacksize(&wanted, std::size_t{1} << 60U);
    ::pthread_setattr_default_np(&wanted);
  }
  ~NoThreads() {
    ::pthread_setattr_default_np(&before_);
    ::pthread_attr_destroy(&before_);
  }
  NoThreads(const NoThreads&) = delete;
  NoThreads& operator=(const NoThreads&) = delete;

 private:
  pthread_attr_t before_{};
};

TEST_CASE("an answer is what the work gives, in a thread of its own") {
  const auto asker = std::this_thread::get_id();
  DetachedAnswer<std::string> answer(
      [asker] { return std::string(std::this_thread::get_id() == asker ? "here" : "elsewhere"); });
  CHECK(answer.within(kLong) == "elsewhere");
}

TEST_CASE("where nothing was asked, there is no answer") {
  CHECK(DetachedAnswer<int>().within(kLong) == 0);
}

TEST_CASE("work that hangs keeps nobody waiting for longer than the patience") {
  const auto goes_on = std::make_shared<std::promise<void>>();
  DetachedAnswer<int> answer([until = goes_on->get_future().share()] {
    until.wait_for(kLong);
    return 1;
  });
  CHECK(answer.within(1ms) == 0);
  goes_on->set_value();
}

TEST_CASE("where the system gives no thread, there is no answer and no exception") {
  const NoThreads limit;
  DetachedAnswer<int> answer([] { return 1; });
  CHECK(answer.within(kLong) == 0);
}

}  // namespace
}  // namespace berth::sys::detached_answer_test
