#pragma once

#include <string_view>

#include "berth/site/site_keys.h"

// The keys of the site file whose values are tables or lists of tables.
namespace berth::site {

Result<void> read_limits(Page& page, std::string_view key, const toml::node& node);
Result<void> read_exclusions(Page& page, std::string_view key, const toml::node& node);
Result<void> read_scheduler_locks(Page& page, std::string_view key, const toml::node& node);
Result<void> read_safe_gpu_locks(Page& page, std::string_view key, const toml::node& node);
Result<void> read_foreign_locks(Page& page, std::string_view key, const toml::node& node);
Result<void> read_hosts(Page& page, std::string_view key, const toml::node& node);
Result<void> read_hub(Page& page, std::string_view key, const toml::node& node);

}  // namespace berth::site
