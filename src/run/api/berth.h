#pragma once

#include <chrono>
#include <cstddef>
#include <expected>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "berth/base/error.h"
#include "berth/device/device.h"
#include "berth/queue/standing.h"
#include "berth/request/request.h"
#include "berth/verdict/ledger.h"
#include "berth/verdict/verdict.h"

/// Berth for C++ programs. The library starts no thread, installs no signal handler and never loads
/// the driver into its host. Instead, the `berth` program asks the driver and waits in the queue,
/// in a process of its own. The library takes the program that $BERTH_PROGRAM names, else `berth`
/// beside this library or this executable, else `berth` on PATH; it must be of the same version.
///
///     auto lease = berth::lease(*berth::request(2, "name~A100 and free>=20G"));
///     if (!lease) { std::cerr << lease.error().message << '\n'; return 1; }
///     for (const auto& [name, value] : lease->variables()) setenv(name.c_str(), value.c_str(), 1);
///     train();             // nobody else is given these two
///     lease->release();    // or at the end of the last process that has a copy
///
/// Errors are values: Error::code says which kind (see error.h), Error::message what happened and
/// what to do next. As the program does, all functions obey the site's policy, a surrounding lease
/// (BERTH_LEASE), and the mask of the devices' maker (CUDA_VISIBLE_DEVICES, ROCR_VISIBLE_DEVICES),
/// unless `mask` says to ignore the mask. Several threads may call the functions at once, but only
/// one thread at a time may use one Lease.
namespace berth {

/// A request for `count` whole devices that meet `where`, an expression as in docs/expressions.md
/// ("" for none). Set the fields of Request for more conditions. Error: `usage`, with the column of
/// the expression.
Result<Request> request(unsigned count = 1, std::string_view where = "");

/// All devices of the machine now. Memory in bytes, power in milliwatts, temperature in degrees
/// Celsius, shares in percent; what the driver does not tell is absent. Error: `no_driver`;
/// `failure`.
Result<Snapshot> snapshot(ReadingSet readings = readings_for_listing());

/// What was found about a device.
struct Finding {
  Device device;
  Verdict verdict;  ///< `reason` is in words: "leased by alice, train.py, since 14:02 (2 h)"
};

/// An error. If Berth came as far as judging the devices, also what it found about each.
struct Refusal : Error {
  std::vector<Finding> findings{};
};

/// The devices that a request gets, in the order in which the job shall see them.
struct Picked {
  std::vector<Device> devices;
  std::string visible_devices;     ///< as Lease::visible_devices
  std::vector<std::string> notes;  ///< what the user should know about the answer, one sentence each
  std::vector<std::pair<std::string, std::string>> variables;  ///< as Lease::variables
};

/// The devices that the request would get now. This leases nothing: the next program that asks may
/// get the same answer. Error: `not_now` and `impossible` with the reason of each device; `usage`;
/// as `snapshot`.
std::expected<Picked, Refusal> pick(const Request& request, MaskUse mask = MaskUse::inherit);

/// One finding for each device: free, or the first condition that it fails, with the numbers.
/// Error: `usage`; as `snapshot`.
Result<std::vector<Finding>> why(const Request& request, MaskUse mask = MaskUse::inherit);

/// Devices that are leased to this process and to the processes forked from it. Programs that these
/// processes execute do not inherit the lease.
class Lease {
 public:
  Lease(Lease&&) noexcept;
  Lease& operator=(Lease&&) noexcept;
  /// Gives up this process's part. The lease ends when no process has a part any more.
  ~Lease();

  /// Its name, as `berth list` shows it.
  const std::string& id() const;
  /// The value for BERTH_LEASE. A process with this value is inside the lease, and its requests get
  /// devices of the lease.
  const std::string& path() const;
  /// The devices as they were when they were granted, in index order.
  const std::vector<Device>& devices() const;
  /// The variables, names and values, that show a job these devices and no others:
  /// CUDA_VISIBLE_DEVICES and CUDA_DEVICE_ORDER, or ROCR_VISIBLE_DEVICES. Of a share also what
  /// bounds it under MPS: CUDA_MPS_PINNED_DEVICE_MEM_LIMIT.
  const std::vector<std::pair<std::string, std::string>>& variables() const;
  /// The variables that a job on these devices must not have, because ROCm would choose among the
  /// devices by them: HIP_VISIBLE_DEVICES and the like.
  const std::vector<std::string>& unset() const;
  /// The value of the first of `variables`: indices, or UUIDs if a device is a MIG instance, or if
  /// the runtime counts otherwise than the driver because a GPU of the machine is lost, hidden or
  /// split by MIG.
  const std::string& visible_devices() const;
  /// The number by which CUDA or HIP knows each device in this process, as long as the environment
  /// of this process stays as it is. nullopt: the mask of this process hides the device, or the
  /// number is not known. Unless a mask of UUIDs says the order, the number is not known in two
  /// cases: a GPU of the machine is lost, hidden or split by MIG; or the models differ and
  /// CUDA_DEVICE_ORDER is not PCI_BUS_ID, so that CUDA counts the fastest GPU first.
  const std::vector<std::optional<std::size_t>>& ordinals() const;
  /// What the user should know about the answer, one sentence each.
  const std::vector<std::string>& notes() const;

  /// Ends the lease now, for all processes that share it. Does nothing the second time. `how`: what
  /// its receipt says of the work; `badly`: it failed. If a lease ends otherwise, its receipt says
  /// `by_others`.
  void release(Ending how = Ending::well);
  /// What the lease had and used, as JSON (docs/schema/receipt.json), after `release`. Waits for
  /// it, for five seconds at most. nullopt: there is none, or it was told before.
  std::optional<std::string> receipt();

 private:
  friend class LeaseWait;
  struct Body;
  explicit Lease(std::unique_ptr<Body> body);
  std::unique_ptr<Body> body_;
};

/// How to ask for a lease.
struct LeaseTerms {
  std::string note{};  ///< shown to others beside the lease
  /// nullopt: stay in the queue for as long as it takes. 0: now or not at all.
  std::optional<std::chrono::milliseconds> wait = std::chrono::milliseconds(0);
  MaskUse mask = MaskUse::inherit;
  /// Variables that the request gets in place of those of this process: "NAME=value", or "NAME" to
  /// leave one out. For a host that has set the variables of a lease and asks from outside this
  /// lease.
  std::vector<std::string> variables{};
  /// Ids of leases that this process has and keeps while it waits. If a request could only ever get
  /// devices of these leases, it is refused (`not_now`), because it would wait for itself.
  std::vector<std::string> beside{};
};

/// Leases devices. Error: as `pick`; `timed_out`; `failure` if the lease directory is not fit for
/// use.
std::expected<Lease, Refusal> lease(const Request& request, const LeaseTerms& terms = {});

/// A request for a lease while it is being answered, for a host that must not block:
///
///     auto wait = berth::LeaseWait::start(request, {.wait = std::nullopt});
///     while (!wait->lease()) {
///       poll(… wait->descriptor() …);           // readable: there is something to see
///       if (auto seen = wait->look(); !seen) return seen.error();
///     }
class LeaseWait {
 public:
  /// Asks, and returns at once. Error: `failure` if the program cannot be started.
  static Result<LeaseWait> start(const Request& request, const LeaseTerms& terms);
  LeaseWait(LeaseWait&&) noexcept;
  LeaseWait& operator=(LeaseWait&&) noexcept;
  /// As `cancel`.
  ~LeaseWait();

  int descriptor() const;
  /// Reads what has arrived, without waiting. nullopt: how the request stands has not changed, or
  /// the lease is granted. Error: the request is refused.
  std::expected<std::optional<Standing>, Refusal> look();
  /// Waits until there is something to see, or until a signal comes.
  void sleep() const;
  /// Leaves the queue at once, if called in the process that asked; in a fork of that process, does
  /// nothing. A lease that was granted stays.
  void cancel();
  /// The lease once it is granted, to be moved from; null before.
  Lease* lease();

 private:
  struct Body;
  explicit LeaseWait(std::unique_ptr<Body> body);
  std::unique_ptr<Body> body_;
};

}  // namespace berth
