#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "berth/lab_queue/model/lab_copy.h"

// The lines of words on the socket of the agent (docs/store-protocol.md).
namespace berth::lab_agent {

// What a request, or somebody who looks, says.

struct WantsStatus {};
/// The queue as people see it, from this position of it on.
struct WantsQueue {
  std::size_t from = 0;
};
/// It wants an entry for these hosts.
struct WantsEntry {
  std::string mark;
  unsigned lane = 0;
  unsigned gpus = 1;
  std::vector<std::string> hosts;
  std::string runs_on{};  ///< its command runs there, since an earlier agent said yes; "": it does not
};
struct OfHost {
  enum class Word { here, joined, closed, left, start };

  Word word;
  std::string host;
};
/// None of these.
struct Nonsense {
  std::string why;
};
using Words = std::variant<WantsStatus, WantsQueue, WantsEntry, OfHost, Nonsense>;

/// Why a connection ends that says what this version does not know.
inline constexpr std::string_view kUnknownWord = "it was asked what this version does not know";

Words words_in(std::string_view line);

/// How many requests one answer tells: all of a long queue would be more than may be sent at once.
inline constexpr std::size_t kMostStanding = 500;
/// What others wrote there, cut: a user who may write to etcd can write more there than an agent
/// does.
std::string shown_origin(const LabStanding& standing);

/// The answer to `status`. `fault`: why the store does not answer; "": it does.
std::vector<std::string> status_answer(std::string_view url, std::string_view name, std::string_view fault,
                                       const lab_queue::LabCopy& store);
/// The answer to `line`, without its end.
std::vector<std::string> queue_answer(const LabOrder& order, std::size_t from);

}  // namespace berth::lab_agent
