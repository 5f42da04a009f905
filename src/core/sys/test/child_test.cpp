#include "berth/sys/job_process.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <string>

#include "berth/sys/file.h"

namespace berth::sys::child_test {
namespace {

constexpr auto kPatience = std::chrono::seconds(30);

struct Pipe {
  Descriptor reader;
  Descriptor writer;

  Pipe() {
    int ends[2];
    REQUIRE(pipe2(ends, O_CLOEXEC) == 0);
    reader = Descriptor(ends[0]);
    writer = Descriptor(ends[1]);
  }
  std::string rest() {
    writer.close();
    std::string text;
    char piece[256];
    for (ssize_t length = 0; (length = read(reader.get(), piece, sizeof piece)) > 0;) {
      text.append(piece, static_cast<std::size_t>(length));
    }
    return text;
  }
};

/// What a shell prints.
std::string output_of(const std::string& script) {
  Pipe pipe;
  auto child = Child::spawn({.program = "sh", .arguments = {"-c", script}, .output = pipe.writer.get()});
  REQUIRE(child);
  const std::string text = pipe.rest();
  CHECK(child->wait(kPatience) == ProcessEnd{});
  return text;
}

TEST_CASE("a child has its three descriptors and no others, whatever its parent has open") {
  const Descriptor inherited(open("/dev/null", O_RDONLY));
  const Descriptor high(fcntl(inherited.get(), F_DUPFD, 200));
  CHECK(output_of("cd /proc/self/fd; echo *") == "0 1 2 3\n");  // 3: the listing itself
}

TEST_CASE("a child has a session of its own and no signal blocked") {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, &before);
  CHECK(output_of("read -r p c s g session rest < /proc/self/stat; [ $session = $$ ] && echo own") ==
        "own\n");
  CHECK(
      output_of(
          "while read -r name bits; do [ $name = SigBlk: ] && echo $bits; done < /proc/self/status; true") ==
      "0000000000000000\n");
  sigprocmask(SIG_SETMASK, &before, nullptr);
}

TEST_CASE("signals of the host program end no wait for a child") {
  struct sigaction before{};
  struct sigaction handled{};
  handled.sa_handler = [](int) {};
  REQUIRE(sigaction(SIGALRM, &handled, &before) == 0);
  constexpr suseconds_t kOftenUs = 2000;
  const itimerval often{{0, kOftenUs}, {0, kOftenUs}};
  setitimer(ITIMER_REAL, &often, nullptr);
  auto child = Child::spawn({.program = "sleep", .arguments = {"0.2"}});
  REQUIRE(child);
  CHECK(child->wait(kPatience) == ProcessEnd{});
  const itimerval never{};
  setitimer(ITIMER_REAL, &never, nullptr);
  sigaction(SIGALRM, &before, nullptr);
}

TEST_CASE("a child that was forked has its three descriptors and no others, and a session of its own") {
  const Descriptor inherited(open("/dev/null", O_RDONLY));
  Pipe pipe;
  auto child = Child::fork({-1, pipe.writer.get(), -1}, [&] {
    const bool others = fcntl(inherited.get(), F_GETFD) == 0 || fcntl(pipe.reader.get(), F_GETFD) == 0;
    sigset_t blocked;
    sigprocmask(SIG_SETMASK, nullptr, &blocked);
    const bool is_clean = !others && getsid(0) == getpid() && sigismember(&blocked, SIGTERM) == 0;
    [[maybe_unused]] const auto written = write(1, is_clean ? "clean" : "not", is_clean ? 5 : 3);
    _exit(3);
  });
  REQUIRE(child);
  CHECK(pipe.rest() == "clean");
  CHECK(child->wait(kPatience) == ProcessEnd{.exit_status = 3, .signal = 0});
}

TEST_CASE("a child that its host has collected is borne") {
  auto child = Child::spawn({.program = "true"});
  REQUIRE(child);
  CHECK(waitpid(-1, nullptr, 0) == child->pid());
  CHECK(to_text(*child->wait(kPatience)) == "an unknown exit status");
}

TEST_CASE("how a child ended is told") {
  auto failing = Child::spawn({.program = "sh", .arguments = {"-c", "exit 3"}});
  CHECK(failing->wait(kPatience) == ProcessEnd{.exit_status = 3, .signal = 0});
  auto waiting = Child::spawn({.program = "cat"});
  auto killed = Child::spawn({.program = "sleep", .arguments = {"1000"}});
  CHECK_FALSE(killed->wait(std::chrono::milliseconds(0)));
  killed->kill(SIGKILL);
  const auto ending = killed->wait(kPatience);
  REQUIRE(ending);
  CHECK(to_text(*ending) == "signal 9 (Killed)");
}

TEST_CASE("a program that cannot be started is an error with its name") {
  const auto child = Child::spawn({.program = "/nowhere/program"});
  REQUIRE_FALSE(child);
  CHECK(child.error().message == "starting /nowhere/program: No such file or directory");
}

TEST_CASE("standard descriptors of the parent may be handed on in any order") {
  Pipe pipe;
  const int saved = dup(0);
  REQUIRE(dup2(pipe.writer.get(), 0) == 0);
  auto child =
      Child::spawn({.program = "sh", .arguments = {"-c", "echo out; echo err >&2"}, .output = 0, .error = 0});
  dup2(saved, 0);
  close(saved);
  REQUIRE(child);
  CHECK(pipe.rest() == "out\nerr\n");
}

// The address sanitizer sees it. A thread that asks a driver may be as late.
TEST_CASE("a child may be let go while its process ends") {
  const auto let_go = [] { (void)Child::spawn({.program = "sleep", .arguments = {"2"}}); };
  const pid_t host = ::fork();
  if (host == 0) {
    // What exit destroys is destroyed before this, since it is made after it.
    std::atexit(let_go);
    let_go();
    std::exit(0);
  }
  int status = -1;
  CHECK(::waitpid(host, &status, 0) == host);
  CHECK(status == 0);
}

TEST_CASE("a child that was let go leaves no zombie once another is started") {
  pid_t pid = 0;
  {
    Pipe pipe;
    auto child = Child::spawn({.program = "cat", .input = pipe.reader.get()});
    REQUIRE(child);
    pid = child->pid();
  }
  // Its input has ended, so it ends; when, is not for us to know.
  siginfo_t info{};
  REQUIRE(waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOWAIT) == 0);
  auto next = Child::spawn({.program = "true"});
  CHECK(waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT) == -1);
  CHECK(next->wait(kPatience) == ProcessEnd{});
}

}  // namespace
}  // namespace berth::sys::child_test
