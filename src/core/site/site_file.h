#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "berth/base/error.h"
#include "berth/verdict/site_policy.h"

namespace berth::site {

/// The files that a policy may come from. The user's file may only make the rules of the site's
/// file stricter.
struct SiteFilePaths {
  std::string site;            ///< "" for none
  std::string user;            ///< "" for none
  bool site_is_named = false;  ///< by BERTH_SITE_FILE: then it has to be there
  /// What `berth exclude` has taken out (see below); counts as the site's. "" for none.
  std::string excluded{};
};

/// $BERTH_SITE_FILE, else /etc/berth.toml; beside it berth.excluded.toml, if its name ends in
/// .toml; and berth.toml under $XDG_CONFIG_HOME, else ~/.config.
SiteFilePaths standard_site_file_paths();

/// The policy in force, and the files that it comes from.
struct SiteFiles {
  SitePolicy policy;
  std::vector<std::string> read;
};

/// Error: `failure` if a file is malformed or cannot be read; the message has the file, the line
/// and what is allowed. An unknown key is no error, nor is a file that is named and missing: see
/// SitePolicy::not_understood. Another file may be missing. What is no regular file, or longer than
/// 1 MiB, is not read; /dev/null is empty.
Result<SiteFiles> read_site_files(const SiteFilePaths& paths = standard_site_file_paths());

/// `policy` with the rules of `text` added. `path` is for messages. `only_narrow`: an entry that
/// would allow more than `policy` does is an error.
Result<SitePolicy> apply_site_text(SitePolicy policy, std::string_view text, std::string_view path,
                                   bool only_narrow);

/// All rules that are in force, the usual ones included: "up to 64 MiB in use that nobody explains
/// is tolerated; …".
std::string policy_in_words(const SitePolicy& policy);

// The devices that `berth exclude` has taken out, in a file of their own beside the site file
// (SiteFilePaths::excluded): Berth never writes what people have written.

/// Takes the devices out from now on, with this reason in place of an earlier one, also after a
/// reboot. Error: `usage` for a reason that is not one line of text; `failure` if the file cannot
/// be read or written.
Result<void> exclude(const std::string& path, const std::vector<std::string>& uuids, std::string_view reason);

/// Ends that for these devices. False: none of them was taken out so. Error: `failure`, likewise.
Result<bool> end_exclusion(const std::string& path, const std::vector<std::string>& uuids);

/// For a request that waits: what `berth exclude` and `include` have written meanwhile.
class ExclusionNews {
 public:
  explicit ExclusionNews(SiteFilePaths paths) : paths_(std::move(paths)) {}

  /// All that is excluded by the site and by the user. `holds_some`: something is, as the caller
  /// knows. nullopt: the file is as at the last call, or there was none and is none; or a site file
  /// cannot be read, and what held before goes on.
  std::optional<std::vector<ExcludedDevice>> next(bool holds_some);

 private:
  SiteFilePaths paths_;
  using Version = std::array<std::int64_t, 3>;  ///< the file, and when it was written; zeros: none
  std::optional<Version> seen_{};               ///< nullopt: it was not looked for
};

}  // namespace berth::site
