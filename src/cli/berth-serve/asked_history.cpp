#include "asked_history.h"

#include <sys/stat.h>

#include <chrono>
#include <string_view>
#include <utility>

#include "berth/base/fail.h"
#include "berth/http/settings.h"
#include "berth/net/answered_document.h"
#include "berth/net/client.h"
#include "berth/sys/system_error.h"

namespace berth::serve {
namespace {

constexpr std::chrono::seconds kHistoryPatience{30};  // longer than an agent itself waits for its disk
constexpr std::size_t kLongestHistory = std::size_t{16} << 20U;
constexpr std::string_view kServiceSocket = "/run/berth-serve/agent.sock";

std::string own_agent() {
  struct stat status{};
  if (::stat(kServiceSocket.data(), &status) == 0 && S_ISSOCK(status.st_mode))
    return fmt::format("unix:{}", kServiceSocket);
  return fmt::format("http://{}", http::kDefaultAddress);
}

std::string reading(const std::string& path) {
  return fmt::format("reading {}", path);
}

}  // namespace

Result<AskedHistory> ask_agent(cli::PeerOptions options, const std::string& target) {
  if (options.url.empty()) options.url = own_agent();
  BERTH_LET(const auto peer, cli::peer_of(options));
  const auto response = net::get_once(peer, target, kHistoryPatience, kLongestHistory);
  std::string asking = fmt::format("asking {}", url_of(peer));
  if (!response) {
    return fail(ErrorCode::failure, "{}: {}, or read the file of an agent that does not run with --file FILE",
                asking, response.error().message);
  }
  BERTH_LET(auto text, net::document_in(*response, asking));
  return AskedHistory{std::move(text), std::move(asking)};
}

Result<history::HistoryFile> open_history(const std::string& path) {
  struct stat status{};
  // If the file is missing, opening it would create it.
  if (::stat(path.c_str(), &status) != 0) return sys::fail_errno(reading(path));
  auto file = history::HistoryFile::open(path);
  if (file) return std::move(*file);
  if (file.error().kind == history::DatabaseError::Kind::taken) {
    return fail(ErrorCode::failure, "{}: an agent has it; ask that one, without --file", reading(path));
  }
  return std::unexpected(fault_of_history(path, file.error()));
}

Error fault_of_history(const std::string& path, const history::DatabaseError& fault) {
  return {ErrorCode::failure, fmt::format("{}: {}", reading(path), fault.message)};
}

}  // namespace berth::serve
