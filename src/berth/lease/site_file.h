#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "berth/core/error.h"
#include "berth/core/site_policy.h"

namespace berth::leasing {

/// Where a policy may come from. The user's file may only narrow what the site's says.
struct SiteFilePaths {
  std::string site;  ///< "" for none
  std::string user;  ///< "" for none
};

/// $BERTH_SITE_FILE, else /etc/berth.toml; and berth.toml under $XDG_CONFIG_HOME, else ~/.config.
SiteFilePaths standard_site_file_paths();

/// What is in force, and the files that it comes from.
struct SiteFiles {
  SitePolicy policy;
  std::vector<std::string> read;
};

/// Error: `failure` when a file is malformed or cannot be read: file, line and what is allowed. A file that
/// is not there is no error, and neither is a key that is not known: see SitePolicy::not_understood.
Result<SiteFiles> read_site_files(const SiteFilePaths& paths);

/// The policy that `text` lays down on top of `policy`. `path` is for messages. `only_narrow`: an entry that
/// would allow more than `policy` does is an error.
Result<SitePolicy> apply_site_text(SitePolicy policy, std::string_view text, std::string_view path,
                                   bool only_narrow);

}  // namespace berth::leasing
