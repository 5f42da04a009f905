// As in http_server.cpp, what is handed to a coroutine is a variable, never a temporary.
#include "berth/lab_queue/etcd_reading.h"

#include <iterator>
#include <utility>

#include "berth/lab_queue/lab_codec.h"
#include "berth/lab_queue/model/lab_keys.h"
#include "berth/net/keep_going.h"
#include "berth/sys/random_word.h"

namespace berth::lab_queue {
namespace {

using namespace std::chrono_literals;

constexpr auto kWatchPatience = 3000ms;  // until it has begun
// Fixed, although an agent asks a store that is silent ever less often (lab_agent.cpp): a watch is
// one request, which reads nothing again, and until there is one, news comes only when it asks.
constexpr auto kBetweenWatches = 1s;
constexpr auto kLongAsleep = 24h;
constexpr std::size_t kKeysOfPage = 500;
constexpr auto kPagePatience = 20s;
constexpr auto kLongestPause = 5s;  // presence has to be renewed in time
constexpr std::size_t kLongestNews = 64U << 20U;

}  // namespace

EtcdReading::EtcdReading(asio::io_context& loop, const EtcdAccess& access, std::function<void()> rung)
    : loop_(loop),
      rung_(std::move(rung)),
      sharing_(net::client_sharing(loop)),
      client_(loop, sharing_, access),
      need_(loop) {}

void EtcdReading::start() {
  net::keep_going(loop_, shared_from_this(), watch);
}

net::Task<Result<std::string>> EtcdReading::ask(EtcdQuestion question, std::chrono::milliseconds patience) {
  auto answer = co_await client_.ask(question, patience);
  if (!answer) doubt(Doubt::reached_late);
  co_return answer;
}

net::Task<Result<ChangeAnswer>> EtcdReading::change(LabChange wanted) {
  EtcdQuestion question = question_to_change(wanted);
  BERTH_CO_LET(const auto answer, co_await ask(std::move(question)));
  auto read = read_change_answer(answer);
  if (read && !read->made) doubt(Doubt::torn);
  if (read && read->made) copy_.made_here(wanted, read->revision);
  co_return read;
}

net::Task<Result<StoredRange>> EtcdReading::read(EtcdQuestion question, std::chrono::milliseconds patience) {
  BERTH_CO_LET(const auto answer, co_await ask(std::move(question), patience));
  co_return read_stored(answer);
}

net::Task<Result<EtcdReading::Found>> EtcdReading::find_store() {
  const EtcdQuestion question = question_for_key(kMarkOfStore);
  BERTH_CO_LET(const auto found, co_await read(question));
  if (!found.values.empty()) co_return Found{stored_text(found.values.front().value), found.revision};
  BERTH_CO_LET(auto mark, sys::random_word());
  LabChange first;
  first.conditions = {{std::string(kMarkOfStore), 0}};
  first.puts.push_back({std::string(kMarkOfStore), std::move(mark)});
  BERTH_CO_DO(co_await change(std::move(first)));
  // The mark is none that is known here, whoever wrote it.
  co_return Found{};
}

void EtcdReading::is_at(std::uint64_t revision) {
  // If a change is new in the store, the watch may still report it. If it was new at the last look
  // already, the watch has missed it.
  if (expected_ > copy_.revision()) doubt(Doubt::missed_change);
  expected_ = revision;
}

net::Task<Result<bool>> EtcdReading::be_current(bool ask) {
  if (!pages_.values.empty()) co_return co_await read_page();
  if (!ask && doubt_ == Doubt::none && copy_.is_whole()) co_return true;
  BERTH_CO_LET(const auto found, co_await find_store());
  const bool is_known = copy_.is_whole() && found.mark == copy_.mark() && found.revision >= copy_.revision();
  if (!is_known || doubt_ == Doubt::torn) co_return co_await read_page();
  if (std::exchange(doubt_, Doubt::none) == Doubt::missed_change) co_return co_await look_for_missed();
  co_return true;
}

/// The store has changed, and the watch has not reported it. Perhaps only a key of another program
/// has changed.
net::Task<Result<bool>> EtcdReading::look_for_missed() {
  const EtcdQuestion question = question_what_changed(kAllOfLab, copy_.revision());
  BERTH_CO_LET(const auto found, co_await read(question));
  if (!copy_.agrees(found)) co_return co_await read_page();
  copy_.is_current_at(found.revision);
  co_return true;
}

// All keys in one answer would be many MB. Many agents may read at once, for example after the
// store was down. So after each page, an agent waits for four times as long as the page took.
net::Task<Result<bool>> EtcdReading::read_page() {
  const bool is_first = pages_.values.empty();
  const std::string from = is_first ? std::string(kAllOfLab) : pages_.values.back().key + '\0';
  const EtcdQuestion question =
      question_for_page(kAllOfLab, from, kKeysOfPage, is_first ? 0 : pages_.revision);
  const auto asked = std::chrono::steady_clock::now();
  auto page = co_await read(question, kPagePatience);
  const auto took = std::chrono::steady_clock::now() - asked;
  if (!page) {
    pages_ = {};
    co_return std::unexpected(page.error());
  }
  if (is_first) pages_.revision = page->revision;
  const bool is_last = page->count <= page->values.size();
  std::ranges::move(page->values, std::back_inserter(pages_.values));
  if (!is_last) {
    net::Timer pause(loop_);
    pause.expires_after(std::min<std::chrono::nanoseconds>(4 * took, kLongestPause));
    co_await pause.async_wait(net::kAwait);
    co_return false;
  }
  copy_.read(std::exchange(pages_, {}));
  doubt_ = Doubt::none;
  expected_ = 0;
  begin_watch_anew();
  co_return true;
}

void EtcdReading::forget() {
  if (!copy_.is_whole()) return;
  copy_.forget();
  begin_watch_anew();
}

void EtcdReading::use_next_member() {
  client_.use_next_member();
}

void EtcdReading::begin_watch_anew() {
  if (watched_) {
    is_watch_to_begin_anew_ = true;
    watched_->hang_up();
  }
  need_.cancel();
}

net::Task<> EtcdReading::watch(std::shared_ptr<EtcdReading> self) {
  while (true) {
    if (!self->copy_.is_whole()) {
      self->need_.expires_after(kLongAsleep);
      co_await self->need_.async_wait(net::kAwait);
      continue;
    }
    self->watched_ = std::make_unique<net::Client>(self->loop_, self->sharing_, self->member());
    const EtcdQuestion question = question_to_watch(kAllOfLab, self->copy_.revision() + 1);
    std::function<void(std::string_view)> heard = [&self](std::string_view text) { self->hear(text); };
    self->input_.clear();
    const Error end =
        co_await self->watched_->follow(question.path, question.body, kWatchPatience, std::move(heard));
    self->watched_.reset();
    if (std::exchange(self->is_watch_to_begin_anew_, false)) continue;
    self->doubt(Doubt::reached_late);
    self->rung_();
    net::Timer pause(self->loop_);
    pause.expires_after(kBetweenWatches);
    co_await pause.async_wait(net::kAwait);
  }
}

void EtcdReading::hear(std::string_view text) {
  const std::size_t known = input_.size();
  input_ += text;
  bool is_news = false;
  std::size_t done = 0;
  for (std::size_t end = input_.find('\n', known); end != std::string::npos; end = input_.find('\n', done)) {
    auto news = read_etcd_news(std::string_view(input_).substr(done, end - done));
    done = end + 1;
    // Without its right to read, as after an end of etcd, it says so and ends.
    if (!news) return watched_->hang_up();
    if (news->has_ended) doubt(Doubt::torn);
    is_news = is_news || !news->changes.empty();
    copy_.hear(std::move(news->changes));
  }
  input_.erase(0, done);
  const bool is_torn = doubt_ == Doubt::torn;
  if (is_torn || input_.size() > kLongestNews) watched_->hang_up();
  if (is_news || is_torn) rung_();
}

}  // namespace berth::lab_queue
