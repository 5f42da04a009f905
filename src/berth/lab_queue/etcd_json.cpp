#include "berth/lab_queue/etcd_json.h"

#include <charconv>

#include <fmt/format.h>

#include "berth/base/base64.h"
#include "berth/base/printable.h"
#include "berth/view/json_reader.h"

namespace berth::lab_queue {
namespace {

/// "": it tells no error. Up to 3.5 the gateway of etcd says it in `error`; from 3.6 on in
/// `message`, beside its `code`. In a stream all versions say it in the `message` of an object
/// `error`.
std::string error_in(const view::Json& answer) {
  const auto error = answer.find("error");
  if (error != answer.end())
    return error->is_object() ? text_at(*error, "message") : text_at(answer, "error");
  return answer.contains("code") ? text_at(answer, "message") : "";
}

}  // namespace

view::Json request_of_range(std::string_view key) {
  return {{"key", in_base64(key)}};
}

view::Json request_of_prefix(std::string_view prefix) {
  std::string end(prefix);
  end.back() = static_cast<char>(end.back() + 1);
  view::Json range = request_of_range(prefix);
  range["range_end"] = in_base64(end);
  return range;
}

std::string on_one_line(const view::Json& json) {
  return json.dump(-1, ' ', false, view::Json::error_handler_t::replace);
}

std::string text_at(const view::Json& object, std::string_view key) {
  const auto found = object.find(key);
  return found == object.end() || !found->is_string() ? "" : found->get<std::string>();
}

std::uint64_t number_at(const view::Json& object, std::string_view key) {
  const std::string text = text_at(object, key);
  std::uint64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

std::unexpected<Error> is_not_etcd() {
  return fail(ErrorCode::failure, "what it answers is not etcd's");
}

Result<view::Json> etcd_answer(std::string_view json) {
  if (view::shape_of(json).levels > kDeepestOfStore) return is_not_etcd();
  view::Json parsed = view::Json::parse(json, nullptr, false);
  if (!parsed.is_object()) return is_not_etcd();
  if (const std::string error = error_in(parsed); !error.empty())
    return fail(ErrorCode::failure, fmt::format("etcd says: {}", printable(error)));
  return parsed;
}

std::string error_told(std::string_view json) {
  const auto answer = etcd_answer(json);
  return answer ? "" : answer.error().message;
}

}  // namespace berth::lab_queue
