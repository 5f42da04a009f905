#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "berth/core/error.h"
#include "berth/core/request.h"
#include "berth/core/select.h"
#include "berth/core/snapshot.h"
#include "berth/core/verdict.h"

/// Berth for C++ programs. The library starts no thread, installs no signal handler and never loads the
/// driver into its host: the `berth` program asks it, in a process of its own. That program is the one that
/// $BERTH_PROGRAM names, else `berth` beside this library or this executable, else `berth` on PATH.
///
///     auto lease = berth::lease(*berth::request(2, "name~A100 and free>=20G"));
///     if (!lease) { std::cerr << lease.error().message << '\n'; return 1; }
///     setenv("CUDA_VISIBLE_DEVICES", lease->visible_devices().c_str(), 1);
///     setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID", 1);
///     train();             // nobody else is given these two
///     lease->release();    // or at the end of the last process that has a copy
///
/// Errors are values: Error::code says which kind (see error.h), Error::message what happened and what to do
/// next. All functions obey CUDA_VISIBLE_DEVICES, the site's policy and a surrounding lease (BERTH_LEASE), as
/// the program does. They may be called from any thread, one at a time.
namespace berth {

/// A request for `count` whole devices that meet `where`, an expression as in docs/expressions.md ("" for
/// none). The fields of Request say more. Error: `usage`, with the column of the expression.
Result<Request> request(unsigned count = 1, std::string_view where = "");

/// All devices of the machine now. Memory in bytes, power in milliwatts, temperature in degrees Celsius,
/// shares in percent; what the driver does not tell is absent. Error: `no_driver`; `failure`.
Result<Snapshot> snapshot(ReadingSet readings = readings_for_listing());

/// The devices that the request would get now, as UUIDs in index order. Holds nothing: the next who asks may
/// be told the same. Error: `not_now` and `impossible` with the reason of each device; `usage`; as
/// `snapshot`.
Result<Choice> pick(const Request& request);

/// One verdict a device: free, or the first question that it fails, with the numbers. Error: `usage`; as
/// `snapshot`.
Result<std::vector<Verdict>> why(const Request& request);

/// Devices that are leased to this process and to those forked from it. Programs that it starts do not
/// inherit the lease.
class Lease {
 public:
  Lease(Lease&&) noexcept;
  Lease& operator=(Lease&&) noexcept;
  /// Gives up this process's part. The lease ends when no process has a part any more.
  ~Lease();

  /// Its name, as `berth list` shows it.
  const std::string& id() const;
  const std::vector<std::string>& uuids() const;
  /// The devices as they were when they were granted, in index order.
  const std::vector<Device>& devices() const;
  /// The value for CUDA_VISIBLE_DEVICES, to be set beside CUDA_DEVICE_ORDER=PCI_BUS_ID: indices, or UUIDs
  /// where one is a MIG instance.
  std::string visible_devices() const;
  /// What is to be known about the choice, one sentence each.
  const std::vector<std::string>& notes() const;

  /// Ends the lease now, for all processes that share it. Does nothing the second time.
  void release();

 private:
  struct Body;
  explicit Lease(std::unique_ptr<Body> body);
  friend Result<Lease> lease(const Request& request, std::string_view note);
  std::unique_ptr<Body> body_;
};

/// Leases devices, now or not at all. `note` is shown to others beside the lease. Error: as `pick`; `failure`
/// when the lease directory is not fit for use.
Result<Lease> lease(const Request& request, std::string_view note = "");

}  // namespace berth
