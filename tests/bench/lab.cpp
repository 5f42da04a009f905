// Agents of a lab in one process: each is that of `berth serve --store`, and keeps requests in the
// line of one etcd, which wait. lab URL FOLDER AGENTS TICKETS HOSTS [FIRST]: prints "waiting" when
// each request has its place. For each line that it reads on standard input, it prints the
// processor time that it has used, in ns, and how many requests have their place. FIRST is the
// number of the first agent, where several processes are one lab.
#include <sys/resource.h>

#include <array>
#include <atomic>
#include <boost/asio.hpp>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>

#include <fmt/format.h>

#include "berth/lab_queue/lab_agent.h"

namespace {

namespace asio = boost::asio;
using Local = asio::local::stream_protocol;

std::uint64_t used_ns() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000U + static_cast<std::uint64_t>(time.tv_nsec);
}

// Its listener, its watch, its questions, and one more that is being opened while an old one
// closes.
constexpr std::size_t kFilesOfAgent = 6;

bool may_open(std::size_t files) {
  rlimit most{};
  if (::getrlimit(RLIMIT_NOFILE, &most) != 0) return false;
  most.rlim_cur = most.rlim_max;
  return most.rlim_max >= files && ::setrlimit(RLIMIT_NOFILE, &most) == 0;
}

/// A request that waits: what it is told it reads, and forgets but for its place.
class Waiter : public std::enable_shared_from_this<Waiter> {
 public:
  Waiter(asio::io_context& loop, std::atomic<std::size_t>& placed) : socket_(loop), placed_(placed) {}

  void wait(const std::string& path, const std::string& words) {
    boost::system::error_code error;
    socket_.connect(Local::endpoint(path), error);
    if (!error) asio::write(socket_, asio::buffer(words), error);
    if (error) {
      std::fprintf(stderr, "%s: %s\n", path.c_str(), error.message().c_str());
      std::exit(1);
    }
    read();
  }

 private:
  void read() {
    socket_.async_read_some(asio::buffer(piece_), [self = shared_from_this()](auto error, std::size_t size) {
      if (error) {
        std::fprintf(stderr, "a request has lost its agent\n");
        std::exit(1);
      }
      const std::string_view text(self->piece_.data(), size);
      if (!self->has_place_ && text.contains("place ")) {
        self->has_place_ = true;
        ++self->placed_;
      }
      self->read();
    });
  }

  Local::socket socket_;
  std::atomic<std::size_t>& placed_;
  bool has_place_ = false;
  std::array<char, 4096> piece_{};
};

}  // namespace

int main(int count, char** words) {
  if (count != 6 && count != 7) return 2;
  const std::string url = words[1];
  const std::string folder = words[2];
  const auto number = [&](int which) { return static_cast<std::size_t>(std::atoll(words[which])); };
  const std::size_t agents = number(3);
  const std::size_t tickets = number(4);
  const std::size_t hosts = number(5);
  const std::size_t first = count == 7 ? number(6) : 0;
  if (const std::size_t files = agents * kFilesOfAgent + tickets * 2; !may_open(files)) {
    std::fprintf(stderr, "this process would open %zu files, and may not\n", files);
    return 1;
  }

  asio::io_context loop;
  for (std::size_t i = 0; i < agents; ++i) {
    berth::http::StoreSettings settings;
    settings.urls = {url};
    settings.name = fmt::format("desk{}", first + i);
    settings.socket = fmt::format("{}/{}.sock", folder, first + i);
    auto access = berth::lab_queue::etcd_access(settings, settings.name);
    const auto log = [](const std::string& line) { std::fprintf(stderr, "%s\n", line.c_str()); };
    if (!access || !berth::lab_queue::start_lab_agent(loop, **std::move(access), log)) return 1;
  }
  std::string names;
  for (std::size_t i = 0; i < hosts; ++i) names += fmt::format("{}gpu{}", i == 0 ? "" : ",", i);
  std::atomic<std::size_t> placed = 0;
  for (std::size_t i = 0; i < tickets; ++i)
    std::make_shared<Waiter>(loop, placed)
        ->wait(fmt::format("{}/{}.sock", folder, first + i % agents),
               fmt::format("wait {:032x} 1 {} 1\n", i, names));

  std::thread asker([&placed] {
    for (int each = std::getchar(); each != EOF; each = std::getchar()) {
      if (each != '\n') continue;
      std::printf("%llu %zu\n", static_cast<unsigned long long>(used_ns()), placed.load());
      std::fflush(stdout);
    }
    std::exit(0);
  });
  asker.detach();
  bool is_told = false;
  while (true) {
    loop.run_for(std::chrono::milliseconds(200));
    if (is_told || placed < tickets) continue;
    is_told = true;
    std::puts("waiting");
    std::fflush(stdout);
  }
}
