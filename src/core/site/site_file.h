#pragma once

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
  /// What `berth exclude` has taken out (src/core/lease/look.h); counts as the site's. ""
  /// for none.
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

}  // namespace berth::site
