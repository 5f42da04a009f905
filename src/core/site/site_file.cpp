#include "berth/site/site_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include <fmt/format.h>

#include "berth/base/text.h"
#include "berth/site/site_keys.h"
#include "berth/sys/file.h"
#include "berth/sys/process.h"

namespace berth::site {
namespace {

constexpr std::size_t kLongestFile = 1U << 20U;
constexpr std::size_t kUsualFile = 1U << 12U;

/// Of one that gives too much, or cannot be read from its start, as a FIFO. /dev/null is empty.
Result<void> check_kind(int file, const std::string& path) {
  struct stat status{};
  if (::fstat(file, &status) != 0) return sys::fail_errno(fmt::format("reading the site file {}", path));
  if (S_ISREG(status.st_mode)) return {};
  return fail(ErrorCode::failure, "the site file {} is not a regular file", path);
}

/// nullopt: there is no such file.
Result<std::optional<std::string>> read_file(const std::string& path) {
  const sys::Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!file) {
    if (errno == ENOENT || errno == ENOTDIR) return std::nullopt;
    return sys::fail_errno(fmt::format("reading the site file {}", path));
  }
  auto text = sys::read_start(file.get(), kUsualFile);
  if (text && text->size() >= kUsualFile) text = sys::read_start(file.get(), kLongestFile);
  if (!text || text->size() > kLongestFile) BERTH_DO(check_kind(file.get(), path));
  if (text && text->size() > kLongestFile)
    return fail(ErrorCode::failure, "the site file {} is longer than 1 MiB", path);
  if (!text) return std::unexpected(context(text.error(), fmt::format("reading the site file {}", path)));
  return *std::move(text);
}

// A home whose folders this process may not enter, as one on a file server whose ticket is over.
bool is_out_of_reach(const std::string& path) {
  struct stat status{};
  return ::stat(path.c_str(), &status) != 0 && errno != ENOENT && errno != ENOTDIR;
}

/// False: there is no such file.
Result<bool> read_into(SiteFiles& files, const std::string& path, bool only_narrow) {
  if (path.empty()) return false;
  auto read = read_file(path);
  // A user's own file only narrows what the site says, and has no say where it is not to be had.
  if (!read && only_narrow && is_out_of_reach(path)) return false;
  BERTH_LET(const auto text, std::move(read));
  if (!text) return false;
  BERTH_LET(auto policy, apply_site_text(files.policy, *text, path, only_narrow));
  files.policy = std::move(policy);
  files.read.push_back(path);
  return true;
}

}  // namespace

SiteFilePaths standard_site_file_paths() {
  SiteFilePaths paths;
  paths.site = sys::variable("BERTH_SITE_FILE");
  paths.site_is_named = !paths.site.empty();
  if (!paths.site_is_named) paths.site = "/etc/berth.toml";
  constexpr std::string_view kToml = ".toml";
  if (paths.site.ends_with(kToml))
    paths.excluded = paths.site.substr(0, paths.site.size() - kToml.size()) + ".excluded.toml";
  const std::string configuration(sys::variable("XDG_CONFIG_HOME"));
  const std::string home(sys::variable("HOME"));
  if (configuration.starts_with('/')) {
    paths.user = configuration + "/berth.toml";
  } else if (home.starts_with('/')) {
    paths.user = home + "/.config/berth.toml";
  }
  return paths;
}

Result<SiteFiles> read_site_files(const SiteFilePaths& paths) {
  SiteFiles files;
  BERTH_LET(const bool is_there, read_into(files, paths.site, false));
  BERTH_DO(read_into(files, paths.excluded, false));
  BERTH_DO(read_into(files, paths.user, true));
  // A misspelled path must not put all rules out of force without a word.
  if (paths.site_is_named && !is_there)
    files.policy.not_understood.push_back(
        fmt::format("BERTH_SITE_FILE={} names a file that is not there: correct the path, or unset "
                    "BERTH_SITE_FILE; /dev/null is a file without rules",
                    paths.site));
  return files;
}

Result<SitePolicy> apply_site_text(SitePolicy policy, std::string_view text, std::string_view path,
                                   bool only_narrow) {
  const toml::parse_result parsed = toml::parse(text);
  if (!parsed) {
    const std::size_t line = parsed.error().source().begin.line;
    return fail(ErrorCode::failure, "{}:{}: {}", path, line,
                words_of_bad_line(text, line, parsed.error().description()));
  }
  Page page{path, only_narrow, policy};
  const auto hub = parsed.table()["hub"];
  if (hub && parsed.table()["hosts"])
    return wrong(page, *hub.node(), "hosts and hub exclude each other: a hub knows the hosts");
  for (const auto& [key, value] : parsed.table()) {
    const auto found = std::ranges::find(keys(), key.str(), &Key::name);
    if (found == keys().end()) {
      std::vector<std::string_view> known;
      for (const Key& each : keys()) known.push_back(each.name);
      policy.not_understood.push_back(wrong(page, value, unknown_key(key.str(), "", known)).error().message);
      continue;
    }
    BERTH_DO(found->read(page, key.str(), value));
  }
  return policy;
}

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
  SiteFilePaths alone;
  alone.excluded = path;
  BERTH_LET(auto files, read_site_files(alone));
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
  auto files = read_site_files(paths_);
  if (!files) return std::nullopt;
  seen_ = now;
  return std::move(files->policy.excluded);
}

}  // namespace berth::site
