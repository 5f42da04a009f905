// As in http_server.cpp, what is handed to a coroutine is a variable, never a temporary.
#include "berth/lab_queue/etcd_client.h"

#include <fmt/format.h>

#include <utility>

#include "berth/base/printable.h"
#include "berth/http/settings.h"

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

net::Task<Result<std::string>> EtcdClient::post(const EtcdQuestion& question,
                                                std::chrono::milliseconds patience) {
  BERTH_CO_LET(auto answer, co_await client_->post(question.path, question.body, patience));
  co_return std::move(answer.body);
}

net::Task<Result<void>> EtcdClient::log_in() {
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

net::Task<Result<std::string>> EtcdClient::ask(const EtcdQuestion& question,
                                               std::chrono::milliseconds patience) {
  if (access_.user.empty()) co_return co_await post(question, patience);
  if (has_way_in()) {
    auto answer = co_await post(question, patience);
    if (!answer || !(refuses_token(*answer) || asks_for_user(*answer))) co_return answer;
  }
  BERTH_CO_DO(co_await log_in());
  co_return co_await post(question, patience);
}

}  // namespace berth::lab_queue
