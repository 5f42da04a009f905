#include "berth/net/name_service.h"

#include <new>

#include "berth/sys/file.h"

namespace berth::net {
namespace {

using namespace std::chrono_literals;

/// A user who is put into another group has its limit then.
constexpr auto kNamesAreKept = 60s;

}  // namespace

std::optional<Asker> Askers::find(std::uint32_t uid) {
  Question& question = questions_[uid];
  if (question.coming.is_awaited()) question.answer = question.coming.within(0ms);
  const auto now = std::chrono::steady_clock::now();
  const bool is_known = question.answer && now - question.asked_at < kNamesAreKept;
  if (is_known || question.coming.is_awaited()) return question.answer;
  question = {.asked_at = now};
  try {
    question.coming = sys::DetachedAnswer<std::optional<Asker>>([uid]() -> std::optional<Asker> {
      return Asker{uid, sys::user_name(uid), sys::group_names_of(uid)};
    });
  } catch (const std::bad_alloc&) {
    // No memory for a thread: nobody has asked. The next call does.
  }
  return std::nullopt;
}

}  // namespace berth::net
