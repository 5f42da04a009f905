// What processes hold through the simulated libcuda, as files that every process of the machine can
// read.
//
//   FILE.d/alloc/PID-START        one a process, text, rewritten in place by its owner alone
//   FILE.d/alloc/PID-START.ended  made by whoever first finds the owner gone, if memory comes back late
//   FILE.d/alloc/.gate            flock'ed while a process decides whether its request still fits
//
// A record counts while its owner holds an open-file-description lock on it *and* the process of
// that start time exists. The lock ends with any death and with exec; the second test makes a
// forked child that inherited the lock not keep its parent's memory.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace berth::sim {

struct Holding {
  std::string uuid;  // of the device, or of its MIG instance's parent
  int slot = -1;
  std::uint64_t bytes = 0;
};

struct Record {
  std::int64_t pid = 0;
  bool draining = false;  // its process has ended, its memory is not back yet
  std::vector<Holding> holdings;
};

/// All records that count. `return_delay_us`: how long memory stays after its process ended.
std::vector<Record> read_records(const std::string& state_directory, std::uint64_t return_delay_us);

/// Whether memory of a listed process whose end is noticed now or was noticed less than the delay
/// ago is still in use. `key` names the listing.
bool still_draining(const std::string& state_directory, const std::string& key,
                    std::uint64_t return_delay_us);
/// The listing's process is alive (again): forget an earlier end.
void forget_end(const std::string& state_directory, const std::string& key);

/// Makes FILE.d and what is in it, open to all users.
bool make_state_directory(const std::string& state_directory);

/// The record of this process.
class OwnRecord {
 public:
  OwnRecord() = default;
  OwnRecord(const OwnRecord&) = delete;
  OwnRecord& operator=(const OwnRecord&) = delete;
  /// Makes the record if there is none yet. REQUIRES: the gate is held.
  bool open(const std::string& state_directory);
  /// Replaces what it says. Readers see the old or the new text, never a mixture.
  bool write(const std::vector<Holding>& holdings);
  void remove();

 private:
  /// false if the program closed our descriptor, and perhaps gave its number another meaning.
  [[nodiscard]] bool still_ours() const;

  int fd_ = -1;
  ino_t inode_ = 0;
  dev_t device_ = 0;
  unsigned sequence_ = 0;
  std::size_t length_ = 0;
  std::string path_;
};

/// Excludes other processes that decide about memory, while it lives.
class AllocationGate {
 public:
  explicit AllocationGate(const std::string& state_directory);
  ~AllocationGate();
  AllocationGate(const AllocationGate&) = delete;
  AllocationGate& operator=(const AllocationGate&) = delete;
  [[nodiscard]] bool held() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

}  // namespace berth::sim
