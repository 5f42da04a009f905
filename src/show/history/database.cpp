// The only file that sees SQLite.
#include "berth/history/database.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <cstdlib>
#include <cstring>

namespace berth::history {
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
