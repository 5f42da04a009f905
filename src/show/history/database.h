#pragma once

#include <cstdint>
#include <expected>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "berth/base/error.h"

namespace berth::history {

/// The default path of the history: in the state directory that systemd keeps for the service
/// ($STATE_DIRECTORY), else in that of the user ($XDG_STATE_HOME, or ~/.local/state). nullopt:
/// there is no such place. `variable` gives "" for a variable that is not set.
std::optional<std::string> default_path(const std::function<std::string_view(const char*)>& variable);

/// Makes the missing folders above the file, for their owner alone, as far as it can.
void make_folders_of(const std::string& path);

}  // namespace berth::history

struct sqlite3;
struct sqlite3_stmt;

namespace berth::history {

/// Why the database failed.
struct DatabaseError {
  enum class Kind {
    corrupt,  ///< the contents of the file make no sense
    foreign,  ///< it is the file of another program, or of a newer version of this
    taken,    ///< another process has it
    other,    ///< the disk is full, cannot be written …: a later try may work
  };
  Kind kind = Kind::other;
  std::string message;
};
template <class T>
using Done = std::expected<T, DatabaseError>;

/// A prepared statement, bound and read from left to right.
class Statement {
 public:
  explicit Statement(sqlite3_stmt* prepared) : prepared_(prepared) {}

  Statement& bind(std::int64_t value);
  Statement& bind(double value);
  Statement& bind(std::string_view value);  ///< must live until the statement has run
  template <class Number>
  Statement& bind(const std::optional<Number>& value) {
    return value ? bind(static_cast<std::int64_t>(*value)) : bind_null();
  }
  /// Goes to the next row. False: there is none.
  Done<bool> next();
  /// Runs a statement that gives no row.
  Done<void> run();

  std::int64_t number(int column) const;
  double real(int column) const;
  std::string text(int column) const;
  bool is_null(int column) const;
  template <class Number>
  std::optional<Number> optional(int column) const {
    if (is_null(column)) return std::nullopt;
    return static_cast<Number>(number(column));
  }

 private:
  Statement& bind_null();
  sqlite3_stmt* prepared_;
  int bound_ = 0;
};

/// One open SQLite file. This process alone has its lock as long as the file is open. So the
/// write-ahead log needs no shared memory (which network file systems lack), and no reader can make
/// the log grow.
class Database {
 public:
  /// REQUIRES: the file exists; it may be empty.
  static Done<Database> open(const std::string& path, std::int64_t most_bytes);

  /// `sql` must live as long as this object, because it names the statement, which is prepared only
  /// once.
  Done<Statement> statement(std::string_view sql);
  /// Runs statements that give no rows, once.
  Done<void> execute(const std::string& sql);
  Done<std::int64_t> number(const std::string& sql);
  Done<std::string> text(const std::string& sql);

 private:
  struct Close {
    void operator()(sqlite3* handle) const;
  };
  struct Finalize {
    void operator()(sqlite3_stmt* prepared) const;
  };
  explicit Database(sqlite3* handle) : handle_(handle) {}

  std::unique_ptr<sqlite3, Close> handle_;
  std::map<std::string_view, std::unique_ptr<sqlite3_stmt, Finalize>> prepared_;  // ends before the handle
};

/// The file of the history, before SQLite opens it.
struct Claim {
  std::string path;  ///< without links
  std::uint64_t inode = 0;
};

/// Makes the file, for its owner alone, if it is missing. DatabaseError: its folder is missing, or
/// others may put files into the folder; or it is a link, no regular file, or another user's.
Done<Claim> claim_file(const std::string& path);

/// The inode of the file that has this name now; 0: there is none.
std::uint64_t inode_of(const std::string& path);

/// Renames the file and its log to PATH.corrupt-2026-03-01; a second one of that day gets -2 at the
/// end. Gives the new name. DatabaseError: also if there are five of that day already; none of
/// these is removed.
Done<std::string> rename_corrupt(const std::string& path, std::int64_t now_s);

}  // namespace berth::history
