// As in http_server.cpp, what is handed to a coroutine is a variable, never a temporary.
#include "berth/net/store_reading.h"

#include <array>
#include <utility>

#include <fmt/format.h>

#include "berth/net/keep_going.h"
#include "berth/sys/newer_calls.h"
#include "berth/sys/system_error.h"

namespace berth::serve {
namespace {

using namespace std::chrono_literals;

constexpr auto kWatchPatience = 3000ms;  // until it has begun
constexpr auto kBetweenWatches = 1s;
constexpr auto kBetweenChecks = 5s;
constexpr auto kLongAsleep = 24h;
constexpr std::size_t kLongestNews = 64U << 20U;

Result<std::string> mark_for_store() {
  std::array<unsigned char, 16> bytes{};
  if (!sys::fill_with_random_bytes(bytes.data(), bytes.size()))
    return sys::fail_errno("asking the kernel for a random number");
  std::string mark;
  for (const unsigned char byte : bytes) mark += fmt::format("{:02x}", byte);
  return mark;
}

}  // namespace

StoreReading::StoreReading(asio::io_context& loop, const StorePlace& place, std::function<void()> rung)
    : loop_(loop),
      rung_(std::move(rung)),
      sharing_(client_sharing(loop)),
      client_(loop, sharing_, place),
      need_(loop) {}

void StoreReading::start() {
  keep_going(loop_, shared_from_this(), watch);
}

StoreReading::Promised<std::string> StoreReading::ask(std::string path, std::string body) {
  auto answer = co_await client_.ask(path, body);
  if (!answer) is_in_doubt_ = true;
  co_return answer;
}

StoreReading::Promised<render::ChangeAnswer> StoreReading::change(render::StoreChange wanted) {
  std::string path = "/v3/kv/txn";
  std::string body = render::store_change_json(wanted);
  const auto answer = co_await ask(std::move(path), std::move(body));
  if (!answer) co_return std::unexpected(answer.error());
  auto read = render::read_change_answer(*answer);
  if (read && !read->made) is_torn_ = true;
  if (read && read->made) mirror_.made_here(wanted, read->revision);
  co_return read;
}

StoreReading::Promised<render::StoredRange> StoreReading::read(std::string body) {
  std::string path = "/v3/kv/range";
  const auto answer = co_await ask(std::move(path), std::move(body));
  if (!answer) co_return std::unexpected(answer.error());
  co_return render::read_stored(*answer);
}

StoreReading::Promised<StoreReading::Found> StoreReading::find_store() {
  const std::string body = render::one_key_json(kMarkOfStore);
  const auto found = co_await read(body);
  if (!found) co_return std::unexpected(found.error());
  if (!found->values.empty()) co_return Found{found->values.front().value, found->revision};
  auto mark = mark_for_store();
  if (!mark) co_return std::unexpected(mark.error());
  render::StoreChange first;
  first.conditions = {{std::string(kMarkOfStore), 0}};
  first.puts.push_back({std::string(kMarkOfStore), *std::move(mark)});
  const auto made = co_await change(std::move(first));
  if (!made) co_return std::unexpected(made.error());
  // Whoever has put it there, it is none that is known here.
  co_return Found{};
}

StoreReading::Promised<void> StoreReading::be_current(bool ask) {
  const Instant now = std::chrono::steady_clock::now();
  const bool is_due = ask || is_in_doubt_ || is_torn_ || !mirror_.is_whole() || now >= next_check_;
  if (!is_due) co_return Result<void>();
  const auto found = co_await find_store();
  if (!found) co_return std::unexpected(found.error());
  const bool is_known =
      mirror_.is_whole() && found->mark == mirror_.mark() && found->revision >= mirror_.revision();
  if (!is_known || is_torn_) co_return co_await read_all();
  is_in_doubt_ = false;
  next_check_ = now + kBetweenChecks;
  // What is new in the store may still be on its way here; what was new at the last check is not.
  const bool has_missed = expected_ > mirror_.revision();
  expected_ = found->revision;
  if (has_missed) co_return co_await look_for_missed();
  co_return Result<void>();
}

/// Something has changed in the store of which the watch has said nothing. It may be somebody else's key.
StoreReading::Promised<void> StoreReading::look_for_missed() {
  const std::string body = render::last_change_with_prefix_json(kAllOfLab);
  const auto found = co_await read(body);
  if (!found) co_return std::unexpected(found.error());
  const bool agrees =
      !found->values.empty() && mirror_.agrees(found->count, found->values.front().changed);
  if (!agrees) co_return co_await read_all();
  mirror_.is_current_at(found->revision);
  co_return Result<void>();
}

StoreReading::Promised<void> StoreReading::read_all() {
  const std::string body = render::all_with_prefix_json(kAllOfLab);
  const auto all = co_await read(body);
  if (!all) co_return std::unexpected(all.error());
  mirror_.read(*all);
  is_torn_ = false;
  is_in_doubt_ = false;
  expected_ = 0;
  next_check_ = std::chrono::steady_clock::now() + kBetweenChecks;
  begin_watch_anew();
  co_return Result<void>();
}

void StoreReading::forget() {
  if (!mirror_.is_whole()) return;
  mirror_.forget();
  begin_watch_anew();
}

void StoreReading::use_next_member() {
  client_.use_next_member();
}

void StoreReading::begin_watch_anew() {
  if (watched_) {
    is_watch_to_begin_anew_ = true;
    watched_->hang_up();
  }
  need_.cancel();
}

asio::awaitable<void, Executor> StoreReading::watch(std::shared_ptr<StoreReading> self) {
  while (true) {
    if (!self->mirror_.is_whole()) {
      self->need_.expires_after(kLongAsleep);
      co_await self->need_.async_wait(kAwait);
      continue;
    }
    self->watched_ = std::make_unique<Client>(self->loop_, self->sharing_, self->member());
    const std::string path = "/v3/watch";
    const std::string body = render::changes_with_prefix_json(kAllOfLab, self->mirror_.revision() + 1);
    std::function<void(std::string_view)> heard = [&self](std::string_view text) { self->hear(text); };
    self->input_.clear();
    const Error end = co_await self->watched_->follow(path, body, kWatchPatience, std::move(heard));
    self->watched_.reset();
    if (std::exchange(self->is_watch_to_begin_anew_, false)) continue;
    self->is_in_doubt_ = true;
    self->rung_();
    Timer pause(self->loop_);
    pause.expires_after(kBetweenWatches);
    co_await pause.async_wait(kAwait);
  }
}

void StoreReading::hear(std::string_view text) {
  const std::size_t known = input_.size();
  input_ += text;
  bool is_news = false;
  std::size_t done = 0;
  for (std::size_t end = input_.find('\n', known); end != std::string::npos; end = input_.find('\n', done)) {
    const auto news = render::read_store_news(std::string_view(input_).substr(done, end - done));
    done = end + 1;
    // Without its right to read, as after an end of etcd, it says so and ends.
    if (!news) return watched_->hang_up();
    is_torn_ = is_torn_ || news->has_ended;
    mirror_.hear(*news);
    is_news = is_news || !news->changes.empty();
  }
  input_.erase(0, done);
  if (is_torn_ || input_.size() > kLongestNews) watched_->hang_up();
  if (is_news || is_torn_) rung_();
}

}  // namespace berth::serve
