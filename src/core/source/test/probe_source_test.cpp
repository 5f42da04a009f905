// The probe is played by the shell here: what is tested is how its caller bears what a probe may
// do.
#include "berth/source/source.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "berth/source/probe/probe.h"

namespace berth::source::probe_source_test {
namespace {

namespace fs = std::filesystem;

constexpr auto kShort = std::chrono::milliseconds(50);

/// Reads one request, as far as a shell needs to.
const std::string kTakeRequest = "while read -r line; do [ \"$line\" = end ] && break; done; ";
/// Stays until its input ends, as a probe that hangs for a while would. The socket of its answers
/// stays open, as that of a probe does.
const std::string kHang = "exec cat 3>&1 >/dev/null";

std::string print(const std::string& text) {
  std::string escaped;
  for (const char c : text) escaped += c == '\n' ? std::string("\\n") : std::string(1, c);
  return "printf '" + escaped + "'; printf . >&0; ";
}

ProbeOptions shell(const std::string& script) {
  ProbeOptions options;
  options.program = "/bin/sh";
  options.arguments = {"-c", script};
  return options;
}

ProbeOptions impatient(const std::string& script) {
  ProbeOptions options = shell(script);
  options.progress_deadline = kShort;
  options.topology_deadline = kShort;
  return options;
}

Result<Snapshot> read_once(ProbeOptions options) {
  auto source = ProbeSource::start(std::move(options));
  if (!source) return std::unexpected(source.error());
  return source->read(ReadingKind::memory);
}

class Folder {
 public:
  Folder() {
    std::string pattern = fs::temp_directory_path() / "berth-state-XXXXXX";
    path_ = mkdtemp(pattern.data());
  }
  ~Folder() { fs::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string path() const { return path_; }
  bool empty() const { return fs::is_empty(path_); }

 private:
  fs::path path_;
};

TEST_CASE("a snapshot comes from the probe") {
  const auto snapshot =
      read_once(shell(kTakeRequest + print("berth-snapshot 1\nsource=nvml\nend\n") + kHang));
  REQUIRE(snapshot);
  CHECK(snapshot->source == "nvml");
}

TEST_CASE("what takes its own time is done while the driver is asked, and once") {
  const Folder folder;
  const std::string done = folder.path() + "/done";
  // It answers when that is done, and at its first question it is killed.
  const std::string first = "[ -e " + done + ".again ] || { : > " + done + ".again; kill -9 $$; }; ";
  const std::string wait = "until [ -e " + done + " ]; do sleep 0.01; done; ";
  auto source = ProbeSource::start(
      shell(kTakeRequest + first + wait + print("berth-snapshot 1\nsource=nvml\nend\n") + kHang));
  REQUIRE(source);
  int times = 0;
  const auto snapshot = source->read_beside(ReadingKind::memory, [&] {
    ++times;
    std::ofstream(done) << "";
  });
  REQUIRE(snapshot);
  CHECK(snapshot->source == "nvml");
  CHECK(times == 1);
}

TEST_CASE("an error comes from the probe with its code") {
  const auto snapshot =
      read_once(shell(kTakeRequest + print("berth-error 1\ncode=no_driver\nmessage=none here\nend\n")));
  REQUIRE_FALSE(snapshot);
  CHECK(snapshot.error() == Error{ErrorCode::no_driver, "none here"});
}

TEST_CASE("a probe that dies is an error that names the signal and the device") {
  const auto early = read_once(shell("kill -SEGV $$"));
  REQUIRE_FALSE(early);
  CHECK(early.error().code == ErrorCode::failure);
  CHECK(early.error().message.contains("signal 11"));
  const auto late =
      read_once(shell(kTakeRequest + print("berth-snapshot 1\n[progress]\nstage=device\nindex=3\ncount=8\n") +
                      "kill -BUS $$"));
  REQUIRE_FALSE(late);
  CHECK(late.error().message.contains("at GPU 3"));
  CHECK(late.error().message.contains("signal 7"));
  const auto quiet = read_once(shell(kTakeRequest + "exit 3"));
  REQUIRE_FALSE(quiet);
  CHECK(quiet.error().message.contains("exit status 3"));
}

TEST_CASE("a probe that is killed is started once more, and no more") {
  const Folder folder;
  const std::string count = "echo >>" + folder.path() + "/starts; ";
  const std::string second = "[ $(wc -l <" + folder.path() + "/starts) = 2 ] || ";
  const std::string answer = print("berth-snapshot 1\nsource=nvml\nend\n");
  CHECK(read_once(shell(count + kTakeRequest + second + "kill -KILL $$; " + answer + kHang)).has_value());
  const auto always = read_once(shell(count + kTakeRequest + "kill -KILL $$"));
  REQUIRE_FALSE(always);
  CHECK(always.error().message.contains("signal 9"));
  std::ifstream starts(folder.path() + "/starts");
  CHECK(std::count(std::istreambuf_iterator<char>(starts), {}, '\n') == 4);
}

TEST_CASE("an answer that is none is an error") {
  const auto snapshot = read_once(shell(kTakeRequest + print("hello\nend\n") + kHang));
  REQUIRE_FALSE(snapshot);
  CHECK(snapshot.error().code == ErrorCode::failure);
}

TEST_CASE("a probe that cannot be started is an error") {
  ProbeOptions options;
  options.program = "/nowhere/berth";
  const auto source = ProbeSource::start(options);
  REQUIRE_FALSE(source);
  CHECK(source.error().message.contains("/nowhere/berth: No such file or directory"));
}

TEST_CASE("a driver that hangs before it has named a device is an error within the deadline") {
  const auto snapshot = read_once(impatient(kTakeRequest + kHang));
  REQUIRE_FALSE(snapshot);
  CHECK(snapshot.error().code == ErrorCode::no_driver);
  CHECK(snapshot.error().message.starts_with("driver not responding since "));
}

TEST_CASE("a driver that hangs at one device gives the others") {
  const auto snapshot = read_once(
      impatient(kTakeRequest +
                print("berth-snapshot 1\n[progress]\nstage=device\nindex=0\ncount=2\n"
                      "[device]\nindex=0\nuuid=GPU-a\n[progress]\nstage=device\nindex=1\ncount=2\n") +
                kHang));
  REQUIRE(snapshot);
  REQUIRE(snapshot->devices.size() == 2);
  CHECK(snapshot->devices[0].uuid == "GPU-a");
  CHECK(snapshot->devices[0].state == DeviceState::ok);
  CHECK(snapshot->devices[1].state == DeviceState::unresponsive);
}

TEST_CASE("a topology that takes too long is a note, and no probe is remembered") {
  const Folder folder;
  ProbeOptions options = impatient(kTakeRequest +
                                   print("berth-snapshot 1\n[device]\nindex=0\nuuid=GPU-a\n"
                                         "[progress]\nstage=topology\n") +
                                   kHang);
  options.progress_deadline = std::chrono::minutes(1);
  options.state_directory = folder.path();
  const auto snapshot = read_once(options);
  REQUIRE(snapshot);
  CHECK(snapshot->devices.at(0).state == DeviceState::ok);
  CHECK_FALSE(snapshot->topology);
  CHECK(snapshot->notes.size() == 1);
  CHECK(folder.empty());
}

TEST_CASE("while a probe hangs no second one is started, and its memory ends with it") {
  const Folder folder;
  ProbeOptions options =
      impatient(kTakeRequest +
                print("berth-snapshot 1\n[device]\nindex=0\nuuid=GPU-a\n[progress]\nstage=device\nindex=1\n"
                      "count=2\n") +
                kHang);
  options.state_directory = folder.path();
  auto first = ProbeSource::start(options);
  REQUIRE(first);
  REQUIRE(first->read(ReadingKind::memory));

  ProbeOptions never = shell("touch " + folder.path() + "/started");
  never.state_directory = folder.path();
  for (int i = 0; i < 2; ++i) {
    const auto second = read_once(never);
    REQUIRE(second);
    CHECK(second->stale_reason->starts_with("driver not responding since "));
    CHECK(second->devices.at(0).uuid == "GPU-a");
    // Its readings are old: nothing may be decided by them.
    CHECK(second->devices.at(0).state == DeviceState::unresponsive);
    CHECK(second->devices.at(1).state == DeviceState::unresponsive);
  }
  CHECK_FALSE(fs::exists(folder.path() + "/started"));
  CHECK(first->read(ReadingKind::memory)->stale_reason);

  // The shell ends when its input does. Its lock ends with it; only then can the file be locked
  // here.
  const std::string memory = folder.path() + "/stuck-probe." + std::to_string(geteuid());
  first = std::unexpected(Error{});
  CHECK(std::system(("flock -w 10 " + memory + " true").c_str()) == 0);
  ProbeOptions healthy = shell(kTakeRequest + print("berth-snapshot 1\nend\n"));
  healthy.state_directory = folder.path();
  const auto third = read_once(healthy);
  REQUIRE(third);
  CHECK_FALSE(third->stale_reason);
  CHECK(folder.empty());
}

TEST_CASE("a probe that comes back is forgotten, and asked through a new one") {
  const Folder folder;
  const std::string gate = folder.path() + "/gate";
  REQUIRE(std::system(("mkfifo " + gate).c_str()) == 0);
  // Hangs until somebody opens the gate. The one after it answers at once.
  ProbeOptions options = impatient(kTakeRequest + "if [ -p " + gate + " ]; then read -r line < " + gate +
                                   "; fi; " + print("berth-snapshot 1\nsource=nvml\nend\n") + kHang);
  options.state_directory = folder.path();
  options.keep = true;
  auto source = ProbeSource::start(options);
  REQUIRE(source);
  CHECK_FALSE(source->read(ReadingKind::memory));
  CHECK_FALSE(source->read(ReadingKind::memory));
  CHECK(std::system(("echo open > " + gate + " && rm " + gate).c_str()) == 0);
  Result<Snapshot> snapshot = source->read(ReadingKind::memory);
  while (!snapshot) snapshot = source->read(ReadingKind::memory);
  CHECK(snapshot->source == "nvml");
  CHECK(folder.empty());
}

TEST_CASE("a kept probe answers many times, and one that died in between is replaced") {
  const Folder folder;
  ProbeOptions options =
      shell("while " + kTakeRequest + "[ \"$line\" = end ]; do " + print("berth-snapshot 1\nend\n") +
            "[ -e " + folder.path() + "/die ] && exit; done");
  options.keep = true;
  auto source = ProbeSource::start(options);
  REQUIRE(source);
  for (int i = 0; i < 3; ++i) CHECK(source->read(ReadingKind::memory));
  std::ofstream(folder.path() + "/die").close();
  for (int i = 0; i < 3; ++i) CHECK(source->read(ReadingKind::memory));
}

}  // namespace
}  // namespace berth::source::probe_source_test
