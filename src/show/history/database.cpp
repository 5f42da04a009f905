#include "berth/history/database.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

#include <fmt/format.h>

#include "berth/sys/file.h"
#include "berth/sys/own_folder.h"

namespace berth::history {

std::optional<std::string> default_path(const std::function<std::string_view(const char*)>& variable) {
  constexpr std::string_view kName = "history.db";
  const std::string_view service = variable("STATE_DIRECTORY");
  if (!service.empty()) return std::string(service.substr(0, service.find(':'))) + "/" + std::string(kName);
  // A relative one is to be ignored, says the specification.
  const std::string_view state = variable("XDG_STATE_HOME");
  if (state.starts_with('/')) return std::string(state) + "/berth/" + std::string(kName);
  const std::string_view home = variable("HOME");
  if (home.starts_with('/')) return std::string(home) + "/.local/state/berth/" + std::string(kName);
  return std::nullopt;
}

void make_folders_of(const std::string& path) {
  // Whether it is there shows when the file is made.
  if (const auto slash = path.rfind('/'); slash != std::string::npos)
    (void)sys::make_folders(path.substr(0, slash));
}

namespace {

constexpr int kMostOfDay = 5;  // corrupt files that are kept: each may be as long as a history

std::unexpected<DatabaseError> refused(DatabaseError::Kind kind, std::string message) {
  return std::unexpected(DatabaseError{kind, std::move(message)});
}

/// systemd's state directory of a dynamic user is a link, which is resolved; a link in place of the
/// file is not.
Done<std::string> resolved(const std::string& path) {
  const auto slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  const std::unique_ptr<char, decltype(&std::free)> real(::realpath(folder.c_str(), nullptr), &std::free);
  if (!real) return refused(DatabaseError::Kind::other, fmt::format("{}: {}", folder, std::strerror(errno)));
  struct stat status{};
  if (::stat(real.get(), &status) != 0 || (status.st_mode & S_IWOTH) != 0) {
    return refused(DatabaseError::Kind::foreign,
                   fmt::format("everybody may put files into {}: choose another place", real.get()));
  }
  return fmt::format("{}/{}", real.get(), path.substr(slash == std::string::npos ? 0 : slash + 1));
}

}  // namespace

Done<Claim> claim_file(const std::string& path) {
  BERTH_LET(auto real, resolved(path));
  const int flags = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
  const sys::Descriptor made(::open(real.c_str(), flags, 0600));
  if (!made && errno == EROFS) return refused(DatabaseError::Kind::other, "its disk is mounted read-only");
  if (!made && errno != EEXIST) return refused(DatabaseError::Kind::other, std::strerror(errno));
  struct stat status{};
  if (::lstat(real.c_str(), &status) != 0) return refused(DatabaseError::Kind::other, std::strerror(errno));
  // SQLite would open it for reading alone, and say of the first write that a descriptor is bad.
  if (!made && S_ISREG(status.st_mode) && ::access(real.c_str(), W_OK) != 0)
    return refused(DatabaseError::Kind::other,
                   errno == EROFS ? "its disk is mounted read-only" : std::strerror(errno));
  if (!S_ISREG(status.st_mode)) return refused(DatabaseError::Kind::foreign, "it is no file: name another");
  if (status.st_uid != ::geteuid() && ::geteuid() != 0)
    return refused(DatabaseError::Kind::foreign, "it is another user's: name another");
  return Claim{std::move(real), status.st_ino};
}

std::uint64_t inode_of(const std::string& path) {
  struct stat status{};
  return ::lstat(path.c_str(), &status) == 0 ? status.st_ino : 0;
}

Done<std::string> rename_corrupt(const std::string& path, std::int64_t now_s) {
  const std::chrono::year_month_day day{
      std::chrono::floor<std::chrono::days>(std::chrono::sys_seconds(std::chrono::seconds(now_s)))};
  const std::string dated = fmt::format("{}.corrupt-{:04}-{:02}-{:02}", path, static_cast<int>(day.year()),
                                        static_cast<unsigned>(day.month()), static_cast<unsigned>(day.day()));
  std::string aside = dated;
  for (int number = 2; inode_of(aside) != 0; ++number) {
    if (number > kMostOfDay)
      return refused(DatabaseError::Kind::other,
                     fmt::format("it is corrupt again, and {} to {} are there already: look at the disk, and "
                                 "move them away",
                                 dated, aside));
    aside = fmt::format("{}-{}", dated, number);
  }
  if (std::rename(path.c_str(), aside.c_str()) != 0)
    return refused(DatabaseError::Kind::other,
                   fmt::format("renaming it to {}: {}", aside, std::strerror(errno)));
  // Without its log it may be worth less; with it, a new file would be taken for the old.
  (void)std::rename((path + "-wal").c_str(), (aside + "-wal").c_str());
  return aside;
}

// The only file that sees SQLite.

namespace {

constexpr int kPageBytes = 4096;
constexpr int kBusyMs = 200;

DatabaseError error_of(sqlite3* handle, int code) {
  DatabaseError fault;
  switch (code & 0xff) {
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      fault.kind = DatabaseError::Kind::corrupt;
      break;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      fault.kind = DatabaseError::Kind::taken;
      break;
    default:
      break;
  }
  fault.message = sqlite3_errstr(code);
  const int error_number = handle == nullptr ? 0 : sqlite3_system_errno(handle);
  const bool told = (code & 0xff) == SQLITE_IOERR || (code & 0xff) == SQLITE_CANTOPEN;
  if (told && error_number != 0) fault.message += fmt::format(" ({})", std::strerror(error_number));
  return fault;
}

std::unexpected<DatabaseError> failed(sqlite3* handle, int code) {
  return std::unexpected(error_of(handle, code));
}

}  // namespace

Statement& Statement::bind(std::int64_t value) {
  sqlite3_bind_int64(prepared_, ++bound_, value);
  return *this;
}

Statement& Statement::bind(double value) {
  sqlite3_bind_double(prepared_, ++bound_, value);
  return *this;
}

Statement& Statement::bind(std::string_view value) {
  sqlite3_bind_text(prepared_, ++bound_, value.data(), static_cast<int>(value.size()), SQLITE_STATIC);
  return *this;
}

Statement& Statement::bind_null() {
  sqlite3_bind_null(prepared_, ++bound_);
  return *this;
}

Done<bool> Statement::next() {
  const int code = sqlite3_step(prepared_);
  if (code == SQLITE_ROW) return true;
  sqlite3_reset(prepared_);
  if (code == SQLITE_DONE) return false;
  return failed(sqlite3_db_handle(prepared_), code);
}

Done<void> Statement::run() {
  const auto row = next();
  sqlite3_reset(prepared_);
  if (!row) return std::unexpected(row.error());
  return {};
}

std::int64_t Statement::number(int column) const {
  return sqlite3_column_int64(prepared_, column);
}

double Statement::real(int column) const {
  return sqlite3_column_double(prepared_, column);
}

std::string Statement::text(int column) const {
  const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(prepared_, column));
  return text == nullptr
             ? std::string()
             : std::string(text, static_cast<std::size_t>(sqlite3_column_bytes(prepared_, column)));
}

bool Statement::is_null(int column) const {
  return sqlite3_column_type(prepared_, column) == SQLITE_NULL;
}

void Database::Close::operator()(sqlite3* handle) const {
  sqlite3_close_v2(handle);
}

void Database::Finalize::operator()(sqlite3_stmt* prepared) const {
  sqlite3_finalize(prepared);
}

Done<Database> Database::open(const std::string& path, std::int64_t most_bytes) {
  sqlite3* handle = nullptr;
  constexpr int kFlags =
      SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE | SQLITE_OPEN_PRIVATECACHE;
  const int code = sqlite3_open_v2(path.c_str(), &handle, kFlags, nullptr);
  Database database(handle);
  if (code != SQLITE_OK) return failed(handle, code);
  sqlite3_busy_timeout(handle, kBusyMs);
  sqlite3_db_config(handle, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  // A commit survives the end of the process at once, and a power cut from the next checkpoint on;
  // no power cut harms the file.
  BERTH_DO(database.execute(
      fmt::format("PRAGMA locking_mode=EXCLUSIVE; PRAGMA page_size={}; PRAGMA max_page_count={}; PRAGMA "
                  "trusted_schema=OFF;PRAGMA cell_size_check=ON; PRAGMA temp_store=MEMORY; PRAGMA "
                  "cache_size=-1000;PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA "
                  "journal_size_limit=4194304;BEGIN IMMEDIATE; COMMIT;",
                  kPageBytes, most_bytes / kPageBytes)));
  return database;
}

Done<Statement> Database::statement(std::string_view sql) {
  const auto known = prepared_.find(sql);
  if (known != prepared_.end()) {
    sqlite3_reset(known->second.get());
    return Statement(known->second.get());
  }
  sqlite3_stmt* prepared = nullptr;
  const int code = sqlite3_prepare_v3(handle_.get(), sql.data(), static_cast<int>(sql.size()),
                                      SQLITE_PREPARE_PERSISTENT, &prepared, nullptr);
  if (code != SQLITE_OK) return failed(handle_.get(), code);
  prepared_.emplace(sql, prepared);
  return Statement(prepared);
}

Done<void> Database::execute(const std::string& sql) {
  const int code = sqlite3_exec(handle_.get(), sql.c_str(), nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) return failed(handle_.get(), code);
  return {};
}

Done<std::int64_t> Database::number(const std::string& sql) {
  BERTH_LET(const auto found, text(sql));
  return found.empty() ? 0 : std::strtoll(found.c_str(), nullptr, 10);
}

Done<std::string> Database::text(const std::string& sql) {
  sqlite3_stmt* prepared = nullptr;
  const int code = sqlite3_prepare_v2(handle_.get(), sql.c_str(), -1, &prepared, nullptr);
  const std::unique_ptr<sqlite3_stmt, Finalize> owner(prepared);
  if (code != SQLITE_OK) return failed(handle_.get(), code);
  Statement statement(prepared);
  BERTH_LET(const auto row, statement.next());
  return row ? statement.text(0) : std::string();
}

}  // namespace berth::history
