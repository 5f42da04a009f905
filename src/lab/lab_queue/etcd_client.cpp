#include "berth/lab_queue/etcd_client.h"

#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "berth/base/error.h"
#include "berth/base/text.h"
#include "berth/http/settings.h"
#include "berth/lab_queue/etcd_messages.h"
#include "berth/lab_queue/model/lab_copy.h"
#include "berth/net/listener.h"
#include "berth/sys/file.h"

// As in http_server.cpp, what is handed to a coroutine is a variable, never a temporary.
namespace berth::lab_queue {
namespace {

constexpr std::size_t kMostOfStore = 64U << 20U;  // 10⁵ tickets

Error why_no_login(const EtcdAccess& access, const Error& error) {
  return {ErrorCode::failure,
          fmt::format("it does not let in the user {} with the password in {}: {}; the file is read again at "
                      "the next try",
                      printable(access.user), printable(access.password_file), error.message)};
}

}  // namespace

EtcdClient::EtcdClient(asio::io_context& loop, std::shared_ptr<net::ClientSharing> sharing,
                       const EtcdAccess& access)
    : loop_(loop), sharing_(std::move(sharing)), access_(access) {
  use_member(0);
}

void EtcdClient::use_next_member() {
  use_member(which_ + 1);
}

void EtcdClient::use_member(std::size_t which) {
  which_ = which % access_.members.size();
  member_ = access_.members[which_];
  // A token of one member holds for the others too, but they may not know it yet.
  show("");
}

void EtcdClient::show(std::string token) {
  member_.token = std::move(token);
  client_ = std::make_unique<net::Client>(loop_, sharing_, member_, kMostOfStore);
}

net::Coroutine<Result<std::string>> EtcdClient::post(const EtcdQuestion& question,
                                                     std::chrono::milliseconds patience) {
  BERTH_CO_LET(auto answer, co_await client_->post(question.path, question.body, patience));
  co_return std::move(answer.body);
}

net::Coroutine<Result<void>> EtcdClient::log_in() {
  BERTH_CO_LET(const auto password, http::read_secret(access_.password_file, "password"));
  show("");
  lets_all_in_ = false;
  const EtcdQuestion question = question_for_token(access_.user, password);
  BERTH_CO_LET(const auto answer, co_await post(question, kEtcdPatience));
  lets_all_in_ = asks_nobody_for_password(answer);
  if (lets_all_in_) co_return Result<void>();
  auto token = read_etcd_login(answer);
  if (!token) co_return std::unexpected(why_no_login(access_, token.error()));
  show(*std::move(token));
  co_return Result<void>();
}

net::Coroutine<Result<std::string>> EtcdClient::ask(const EtcdQuestion& question,
                                                    std::chrono::milliseconds patience) {
  if (access_.user.empty()) co_return co_await post(question, patience);
  if (has_way_in()) {
    auto answer = co_await post(question, patience);
    if (!answer || !(refuses_token(*answer) || asks_for_user(*answer))) co_return answer;
  }
  BERTH_CO_DO(co_await log_in());
  co_return co_await post(question, patience);
}

// As in http_server.cpp, what is handed to a coroutine is a variable, never a temporary.

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

net::Coroutine<Result<std::string>> EtcdReading::ask(EtcdQuestion question,
                                                     std::chrono::milliseconds patience) {
  auto answer = co_await client_.ask(question, patience);
  if (!answer) doubt(Doubt::reached_late);
  co_return answer;
}

net::Coroutine<Result<ChangeAnswer>> EtcdReading::change(LabChange wanted) {
  EtcdQuestion question = question_to_change(wanted);
  BERTH_CO_LET(const auto answer, co_await ask(std::move(question)));
  auto read = read_change_answer(answer);
  if (read && !read->made) doubt(Doubt::torn);
  if (read && read->made) copy_.made_here(wanted, read->revision);
  co_return read;
}

net::Coroutine<Result<StoredRange>> EtcdReading::read(EtcdQuestion question,
                                                      std::chrono::milliseconds patience) {
  BERTH_CO_LET(const auto answer, co_await ask(std::move(question), patience));
  co_return read_stored(answer);
}

net::Coroutine<Result<EtcdReading::FoundStore>> EtcdReading::find_store() {
  const EtcdQuestion question = question_for_key(kMarkOfStore);
  BERTH_CO_LET(const auto found, co_await read(question));
  if (!found.values.empty()) co_return FoundStore{stored_text(found.values.front().value), found.revision};
  BERTH_CO_LET(auto mark, sys::random_word());
  LabChange first;
  first.conditions = {{std::string(kMarkOfStore), 0}};
  first.puts.push_back({std::string(kMarkOfStore), std::move(mark)});
  BERTH_CO_DO(co_await change(std::move(first)));
  // The mark is none that is known here, whoever wrote it.
  co_return FoundStore{};
}

void EtcdReading::is_at(std::uint64_t revision) {
  // If a change is new in the store, the watch may still report it. If it was new at the last look
  // already, the watch has missed it.
  if (expected_ > copy_.revision()) doubt(Doubt::missed_change);
  expected_ = revision;
}

net::Coroutine<Result<bool>> EtcdReading::be_current(bool ask) {
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
net::Coroutine<Result<bool>> EtcdReading::look_for_missed() {
  const EtcdQuestion question = question_what_changed(kAllOfLab, copy_.revision());
  BERTH_CO_LET(const auto found, co_await read(question));
  if (!copy_.agrees(found)) co_return co_await read_page();
  copy_.is_current_at(found.revision);
  co_return true;
}

// All keys in one answer would be many MB. Many agents may read at once, for example after the
// store was down. So after each page, an agent waits for four times as long as the page took.
net::Coroutine<Result<bool>> EtcdReading::read_page() {
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

net::Coroutine<> EtcdReading::watch(std::shared_ptr<EtcdReading> self) {
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

// As in http_server.cpp, what is handed to a coroutine is a variable, never a temporary.

namespace {

using namespace std::chrono_literals;

constexpr auto kKeptHistory = 10min;
constexpr auto kPresence = 30s;
constexpr auto kRenewal = 10s;

}  // namespace

void Compaction::is_at(std::uint64_t revision, Instant now) {
  // Less than before: it was wiped, or is another one.
  if (!noted_ || revision < newest_) noted_ = {now, revision};
  newest_ = revision;
}

std::optional<std::uint64_t> Compaction::due(Instant now) {
  if (!noted_ || now < noted_->when + kKeptHistory) return std::nullopt;
  return std::exchange(noted_, Heard{now, newest_})->revision;
}

net::Coroutine<Result<EtcdHeartbeat::Instant>> EtcdHeartbeat::renew(bool anew) {
  const Instant now = std::chrono::steady_clock::now();
  if (anew) is_shown_ = false;
  if (!lease_.empty()) {
    EtcdQuestion question = question_to_renew(lease_);
    BERTH_CO_LET(const auto answer, co_await store_->ask(std::move(question)));
    const auto renewed = read_lease(answer);
    if (renewed) store_->is_at(renewed->revision);
    if (renewed) compaction_.is_at(renewed->revision, now);
    if (!renewed || renewed->ttl_s <= 0) {
      lease_.clear();
      is_shown_ = false;
    }
  }
  // Kept also if the rest fails: a store that is too slow would otherwise get one more lease with
  // each try.
  if (lease_.empty()) {
    EtcdQuestion question = question_for_lease(std::chrono::seconds(kPresence).count());
    BERTH_CO_LET(const auto answer, co_await store_->ask(std::move(question)));
    BERTH_CO_LET(const auto granted, read_lease(answer));
    lease_ = granted.id;
  }
  if (is_shown_) {
    BERTH_CO_DO(co_await let_forget(now));
  } else {
    LabChange presence;
    presence.puts.push_back({key_of(kLabAlive, name_), std::string(version()), lease_});
    BERTH_CO_DO(co_await store_->change(std::move(presence)));
    is_shown_ = true;
  }
  co_return now + kRenewal;
}

/// The past revisions that etcd keeps would fill its space.
net::Coroutine<Result<void>> EtcdHeartbeat::let_forget(Instant now) {
  const auto revision = compaction_.due(now);
  if (!revision) co_return Result<void>();
  EtcdQuestion question = question_to_forget(*revision);
  BERTH_CO_LET(const auto answer, co_await store_->ask(std::move(question)));
  // Each agent says so, and the first one is obeyed.
  const std::string fault = forgetting_fault(answer);
  if (!fault.empty() && fault != forgetting_fault_)
    log_(
        fmt::format("the store does not forget old changes, and its file grows: {}; start etcd with "
                    "--auto-compaction-mode=periodic --auto-compaction-retention=10m",
                    printable(fault)));
  forgetting_fault_ = fault;
  co_return Result<void>();
}

}  // namespace berth::lab_queue
