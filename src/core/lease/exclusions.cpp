#include "berth/lease/exclusions.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include <fmt/format.h>

#include "berth/base/printable.h"
#include "berth/base/text_match.h"
#include "berth/sys/file.h"
#include "berth/sys/lock.h"
#include "berth/sys/system_error.h"

namespace berth::leasing {
namespace {

constexpr mode_t kExcludedFileMode = 0644;

/// A string of TOML. What cannot stand in one, such as DEL or bytes that are no UTF-8, stands there
/// as the page and the terminal show it: a file that nobody can read would stop all grants.
std::string toml_string(std::string_view text) {
  std::string quoted = "\"";
  for (const char letter : printable(text)) {
    if (letter == '"' || letter == '\\') quoted += '\\';
    quoted += letter;
  }
  return quoted + '"';
}

std::string as_text(const std::vector<ExcludedDevice>& excluded) {
  std::string text = "# Written by `berth exclude`. `berth include` by root takes a GPU back in.\n";
  for (const ExcludedDevice& each : excluded)
    text += fmt::format("\n[[excluded]]\ndevice = {}\nreason = {}\n", toml_string(each.selector),
                        toml_string(each.reason));
  return text;
}

Result<std::vector<ExcludedDevice>> excluded_in(const std::string& path) {
  site::SiteFilePaths alone;
  alone.excluded = path;
  BERTH_LET(auto files, site::read_site_files(alone));
  return std::move(files.policy.excluded);
}

Result<void> write_exclusions(const std::string& path, const std::vector<ExcludedDevice>& excluded) {
  if (excluded.empty()) {
    if (::unlink(path.c_str()) == 0) return {};
    return sys::fail_errno(fmt::format("removing {}", path));
  }
  return sys::replace_file(path, as_text(excluded), kExcludedFileMode);
}

bool is_one_of(const ExcludedDevice& device, const std::vector<std::string>& uuids) {
  return std::ranges::find(uuids, device.selector) != uuids.end();
}

}  // namespace

Result<void> exclude(const std::string& path, const std::vector<std::string>& uuids,
                     std::string_view reason) {
  const bool is_one_line =
      std::ranges::none_of(reason, [](char letter) { return static_cast<unsigned char>(letter) < ' '; });
  if (trimmed(reason).empty() || !is_one_line)
    return fail(ErrorCode::usage, "the reason is one line of text: users will be told it");
  if (path.empty())
    return fail(ErrorCode::failure,
                "BERTH_SITE_FILE names no file that ends in .toml: beside such a file "
                "Berth keeps what is excluded");
  BERTH_LET(const auto alone, sys::lock_for_change(path));
  BERTH_LET(auto excluded, excluded_in(path));
  std::erase_if(excluded, [&](const ExcludedDevice& device) { return is_one_of(device, uuids); });
  for (const std::string& uuid : uuids) excluded.push_back({uuid, std::string(reason)});
  return write_exclusions(path, excluded);
}

Result<bool> end_exclusion(const std::string& path, const std::vector<std::string>& uuids) {
  BERTH_LET(const auto alone, sys::lock_for_change(path));
  BERTH_LET(auto excluded, excluded_in(path));
  if (std::erase_if(excluded, [&](const ExcludedDevice& device) { return is_one_of(device, uuids); }) == 0)
    return false;
  BERTH_DO(write_exclusions(path, excluded));
  return true;
}

std::optional<std::vector<ExcludedDevice>> ExclusionNews::next(bool holds_some) {
  if (paths_.excluded.empty()) return std::nullopt;
  struct stat status{};
  Version now{};
  if (::stat(paths_.excluded.c_str(), &status) == 0)
    now = {static_cast<std::int64_t>(status.st_ino), status.st_mtim.tv_sec, status.st_mtim.tv_nsec};
  // The file may have gone since the caller has read it.
  const bool is_as_before = seen_ ? now == *seen_ : now == Version{} && !holds_some;
  if (is_as_before) {
    seen_ = now;
    return std::nullopt;
  }
  auto files = site::read_site_files(paths_);
  if (!files) return std::nullopt;
  seen_ = now;
  return std::move(files->policy.excluded);
}

}  // namespace berth::leasing
