#include "berth/net/answered_document.h"

#include "berth/base/fail.h"
#include "berth/base/printable.h"
#include "berth/view/answers_json.h"

namespace berth::net {

Result<std::string> document_in(http::Response response, std::string_view asking) {
  constexpr int kWantsToken = 401;
  if (response.status == 200) return std::move(response.body);
  if (response.status == kWantsToken)
    return fail(ErrorCode::failure, "{}: it wants a token; give it with --token-file FILE", asking);
  const std::string message = view::message_of_error(response.body);
  return fail(
      ErrorCode::failure, "{}: {}", asking,
      message.empty() ? fmt::format("it answers with HTTP status {}", response.status) : printable(message));
}

}  // namespace berth::net
