#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "berth/base/error.h"
#include "berth/site/toml.h"
#include "berth/verdict/site_policy.h"

namespace berth::site {

// How the values of the site file are read. Each error has the file, the line, and what is allowed.

/// A file that is being read into a policy.
struct Page {
  std::string_view path;
  bool only_narrow;  ///< an entry that would allow more than the policy is an error
  SitePolicy& policy;
};

std::unexpected<Error> wrong(const Page& page, const toml::node& node, std::string_view what);

/// Refuses a user's own file: all requests in the queue go by the same rule.
Result<void> is_for_all(const Page& page, std::string_view key, const toml::node& node);
/// Refuses it too: a user's own file could only have what is so wrong.
Result<void> is_of_the_machine(const Page& page, std::string_view key, const toml::node& node);

Result<std::string> text_of(const Page& page, const toml::node& node, std::string_view key);
/// `now`: a user's own file may only lower it.
Result<std::uint64_t> read_bytes(const Page& page, std::string_view key, const toml::node& node,
                                 std::uint64_t least, std::uint64_t now);
/// A time, or "forever": nullopt. A user's own file may only shorten `now`.
Result<std::optional<std::int64_t>> read_span(const Page& page, std::string_view key, const toml::node& node,
                                              std::optional<std::int64_t> now);
/// A time of some seconds. `now`: a user's own file may only shorten it; nullopt: there is none
/// yet.
Result<std::int64_t> read_seconds(const Page& page, std::string_view key, const toml::node& node,
                                  std::optional<std::int64_t> now);
/// A number from 1 to `most`. `now`: a user's own file may only lower it; nullopt: there is none
/// yet.
Result<unsigned> read_number(const Page& page, std::string_view key, const toml::node& node,
                             std::int64_t most, std::optional<unsigned> now);
/// A number of `what`, which may be 0.
Result<unsigned> read_count(const Page& page, std::string_view key, const toml::node& node,
                            std::string_view what);
Result<bool> read_truth(const Page& page, std::string_view key, const toml::node& node);
/// Adds the texts of a list.
Result<void> read_texts(const Page& page, std::string_view key, const toml::node& node,
                        std::vector<std::string>& texts);
/// The same; refuses a user's own file.
Result<void> read_names(const Page& page, std::string_view key, const toml::node& node,
                        std::vector<std::string>& names);

// The table of the keys of the site file. Reading, the list of known keys and the words of `berth
// doctor` are made from it.
struct Key {
  std::string_view name;
  Result<void> (*read)(Page&, std::string_view key, const toml::node&);
  /// What is in force, for `berth doctor`; "": there is nothing to say. null: as another row says.
  std::string (*words)(const SitePolicy&) = nullptr;
  std::string_view sentence = "{}";  ///< in which these words are said
};
std::span<const Key> keys();

}  // namespace berth::site
