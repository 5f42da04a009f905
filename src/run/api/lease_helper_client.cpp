#include "berth/api/lease_helper_client.h"

#include <dlfcn.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "berth/answers/answers.h"
#include "berth/api/berth.h"
#include "berth/api/lease_messages.h"
#include "berth/base/text.h"
#include "berth/lease/domain.h"
#include "berth/request/request.h"
#include "berth/store/lease_directory.h"
#include "berth/sys/clock.h"
#include "berth/sys/file.h"
#include "berth/sys/job_process.h"
#include "berth/sys/socket.h"
#include "berth/view/verdict_text.h"

namespace berth::api {
namespace {

// From the folder of this library or executable: both in one folder; PREFIX/lib and PREFIX/bin; the
// same with Debian's folder for an architecture; PREFIX/lib/pythonX.Y/site-packages/berth and
// PREFIX/bin.
constexpr std::array<const char*, 4> kBeside{"berth", "../bin/berth", "../../bin/berth",
                                             "../../../../bin/berth"};

std::filesystem::path own_file() {
  Dl_info info{};
  std::error_code ignored;
  // For a library: its file. Linked into a program, that gives the name the program was called by,
  // which may be on no path.
  if (::dladdr(reinterpret_cast<const void*>(&find_program), &info) != 0 && info.dli_fname != nullptr &&
      std::filesystem::path(info.dli_fname).has_parent_path())
    return std::filesystem::canonical(info.dli_fname, ignored);
  return std::filesystem::canonical("/proc/self/exe", ignored);
}

bool is_program(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(path, ignored) && ::access(path.c_str(), X_OK) == 0;
}

std::string on_path() {
  const char* value = std::getenv("PATH");
  std::string_view rest = value != nullptr ? value : "";
  while (!rest.empty()) {
    const std::string_view folder = rest.substr(0, rest.find(':'));
    rest.remove_prefix(std::min(folder.size() + 1, rest.size()));
    if (const auto path = std::filesystem::path(folder) / "berth"; !folder.empty() && is_program(path))
      return path;
  }
  return {};
}

}  // namespace

Result<std::string> find_program() {
  const char* named = std::getenv("BERTH_PROGRAM");
  if (named != nullptr && *named != '\0') {
    if (is_program(named)) return named;
    return fail(ErrorCode::failure,
                "BERTH_PROGRAM={} is no program that can be run; unset it, or let it name the "
                "berth program",
                named);
  }
  const std::filesystem::path folder = own_file().parent_path();
  for (const char* beside : kBeside) {
    if (is_program(folder / beside)) return (folder / beside).lexically_normal();
  }
  if (std::string path = on_path(); !path.empty()) return path;
  return fail(ErrorCode::failure,
              "the berth program is missing: it is neither near {} nor on PATH. Install Berth "
              "again, or let BERTH_PROGRAM name the program",
              folder.native());
}

std::vector<Finding> with_devices(const std::vector<Verdict>& verdicts, const Snapshot& snapshot) {
  const auto devices = view::devices_of(verdicts, snapshot);
  std::vector<Finding> found;
  for (std::size_t i = 0; i < verdicts.size(); ++i) {
    if (devices[i] != nullptr) found.push_back({*devices[i], verdicts[i]});
  }
  return found;
}

std::vector<Finding> findings(const std::vector<Verdict>& verdicts, const Snapshot& snapshot) {
  return with_devices(answers::with_reasons(verdicts, snapshot, answers::plain_style()), snapshot);
}

std::vector<Device> devices_among(const std::vector<std::string>& uuids, const Snapshot& snapshot) {
  std::vector<Device> found;
  for (const std::string& uuid : uuids) {
    if (const Device* device = find_device(snapshot, uuid)) found.push_back(*device);
  }
  return found;
}

}  // namespace berth::api

// The host's side of a lease. A helper process, `berth __lease`, waits in the queue for the host.
// Waiting needs the signal of a timer, a probe of the driver and sleeping in locks, which a host
// program must not be burdened with. The helper sends the descriptors that hold the lease, and
// ends. The socket to it stays: its copies live as long as the lease. The helper hands its end to
// the process that keeps the receipt, which sees when they are gone.
namespace berth {
namespace {

// A helper that was killed or has answered is gone long before; only a machine that stands still
// takes longer.
constexpr std::chrono::seconds kEndsWithin{5};
// As long as the receipt's writer waits for the driver and the disk, and some more.
constexpr std::chrono::seconds kReceiptWithin{5};

}  // namespace

struct Lease::Body {
  Body(api::LeaseGranted granted, const Request& request, const Snapshot& snapshot,
       std::vector<sys::Descriptor> descriptors, sys::Descriptor receipt_keeper)
      : held({granted.directory, store::DirectoryOrigin::environment}, granted.id, std::move(descriptors)),
        id(to_text(granted.id)),
        path(std::move(granted.path)),
        devices(api::devices_among(granted.uuids, snapshot)),
        mask(job_mask(granted.uuids, snapshot, granted.mask_by_uuid)),
        ordinals(berth::ordinals(granted.uuids, snapshot, leasing::inherited_masks())),
        notes(std::move(granted.notes)),
        keeper(std::move(receipt_keeper)) {
    bound_job(mask, granted.uuids.size(), request);
  }

  store::HandedLease held;
  std::string id;
  std::string path;
  std::vector<Device> devices;
  JobMask mask;
  std::vector<std::optional<std::size_t>> ordinals;
  std::vector<std::string> notes;
  /// The process that keeps the receipt is at the other end. It sees from the end of our copies
  /// that the lease has ended.
  sys::Descriptor keeper;
  bool is_released = false;
};

Lease::Lease(std::unique_ptr<Body> body) : body_(std::move(body)) {}
Lease::Lease(Lease&&) noexcept = default;
Lease& Lease::operator=(Lease&&) noexcept = default;
Lease::~Lease() = default;

const std::string& Lease::id() const {
  return body_->id;
}
const std::string& Lease::path() const {
  return body_->path;
}
const std::vector<Device>& Lease::devices() const {
  return body_->devices;
}
const std::string& Lease::visible_devices() const {
  return body_->mask.visible;
}
const std::vector<std::pair<std::string, std::string>>& Lease::variables() const {
  return body_->mask.variables;
}
const std::vector<std::string>& Lease::unset() const {
  return body_->mask.unset;
}
const std::vector<std::optional<std::size_t>>& Lease::ordinals() const {
  return body_->ordinals;
}
const std::vector<std::string>& Lease::notes() const {
  return body_->notes;
}
void Lease::release(Ending how) {
  body_->held.release();
  if (std::exchange(body_->is_released, true) || !body_->keeper) return;
  (void)sys::send_message(body_->keeper.get(), to_text(how));
  // For the forks too, which share this socket.
  ::shutdown(body_->keeper.get(), SHUT_WR);
}

std::optional<std::string> Lease::receipt() {
  if (!body_->is_released || !body_->keeper) return std::nullopt;
  const auto until = std::chrono::steady_clock::now() + kReceiptWithin;
  std::string text;
  bool has_ended = false;
  while (!has_ended && std::chrono::steady_clock::now() < until) {
    pollfd ready{body_->keeper.get(), POLLIN, 0};
    ::poll(&ready, 1, sys::poll_timeout(until));
    const auto received = sys::receive_message(body_->keeper.get());
    if (received) text += received->text;
    has_ended = !received || received->ended;
  }
  body_->keeper.close();
  return has_ended && !text.empty() ? std::optional(std::move(text)) : std::nullopt;
}

struct LeaseWait::Body {
  Body(sys::Child started, sys::Descriptor ours, std::string named, Request wanted)
      : helper(std::move(started)),
        socket(std::move(ours)),
        program(std::move(named)),
        request(std::move(wanted)) {}
  ~Body() { cancel(); }
  Body(const Body&) = delete;
  Body& operator=(const Body&) = delete;

  Result<std::optional<Standing>> take(api::LeaseMessage message);
  Result<void> grant(api::LeaseGranted granted);
  Refusal ended() const;
  void cancel();

  sys::Child helper;
  sys::Descriptor socket;  ///< empty once the answer is there
  std::string program;
  Request request;
  pid_t asker = ::getpid();
  std::string text;
  std::vector<sys::Descriptor> descriptors;
  Snapshot snapshot;
  std::optional<api::LeaseRefused> refused;
  std::optional<Lease> lease;
};

LeaseWait::LeaseWait(std::unique_ptr<Body> body) : body_(std::move(body)) {}
LeaseWait::LeaseWait(LeaseWait&&) noexcept = default;
LeaseWait& LeaseWait::operator=(LeaseWait&&) noexcept = default;
LeaseWait::~LeaseWait() = default;

Result<LeaseWait> LeaseWait::start(const Request& request, const LeaseTerms& terms) {
  auto program = api::find_program();
  if (!program) return std::unexpected(program.error());
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return sys::fail_errno("making a socket to the program that queues for the lease");
  sys::Descriptor ours(ends[0]);
  const sys::Descriptor theirs(ends[1]);
  sys::Command command{.program = *program, .arguments = {"__lease"}, .input = theirs.get()};
  auto helper = sys::Child::spawn(command);
  if (!helper) return std::unexpected(context(helper.error(), "queueing for a lease"));
  const api::LeaseAsk ask{std::string(version()),        request,         terms.note,  terms.wait,
                          terms.mask == MaskUse::ignore, terms.variables, terms.beside};
  // If the helper has ended already, this shows when its answer is read.
  (void)sys::send_message(ours.get(), api::encode(ask));
  return LeaseWait(std::make_unique<Body>(std::move(*helper), std::move(ours), std::move(*program), request));
}

int LeaseWait::descriptor() const {
  return body_->socket.get();
}

void LeaseWait::sleep() const {
  pollfd ready{body_->socket.get(), POLLIN, 0};
  ::poll(&ready, 1, -1);
}

void LeaseWait::cancel() {
  if (body_) body_->cancel();
}

void LeaseWait::Body::cancel() {
  if (::getpid() != asker || !socket) return;
  // A helper that has ended is not signalled: its pid may belong to another process by now.
  if (!helper.wait(std::chrono::milliseconds(0))) {
    helper.kill(SIGKILL);
    helper.wait(kEndsWithin);
  }
  // If a grant has come meanwhile, it would stay in the socket. It would hold the lease for as long
  // as a fork of ours has that socket open.
  (void)sys::receive_message(socket.get());
  socket.close();
}

Lease* LeaseWait::lease() {
  return body_->lease ? &*body_->lease : nullptr;
}

Refusal LeaseWait::Body::ended() const {
  return {{ErrorCode::failure,
           fmt::format(
               "{} has ended without an answer to the request for a lease. Either it was killed, or it is "
               "not the berth program of version {} that this library works with: `{} version` says; "
               "BERTH_PROGRAM can name another",
               program, version(), program)}};
}

Result<void> LeaseWait::Body::grant(api::LeaseGranted granted) {
  // At least one for each device, and the ticket's.
  if (descriptors.size() < granted.uuids.size() + 1)
    return fail(ErrorCode::failure,
                "a lease was granted, and its descriptors could not be received (is the limit "
                "of open files reached?)");
  // The helper holds the lease too, until it has ended. If the host gave its lease up before that,
  // the lease would not end.
  helper.wait(kEndsWithin);
  if (asks_memory_by_runs(request))
    request = with_memory(std::move(request),
                          granted.promise_bytes > 0 ? std::optional(granted.promise_bytes) : std::nullopt);
  lease = Lease(std::make_unique<Lease::Body>(std::move(granted), request, snapshot, std::move(descriptors),
                                              std::move(socket)));
  return {};
}

Result<std::optional<Standing>> LeaseWait::Body::take(api::LeaseMessage message) {
  if (auto* seen = std::get_if<Snapshot>(&message)) snapshot = std::move(*seen);
  if (auto* no = std::get_if<api::LeaseRefused>(&message)) refused = std::move(*no);
  if (auto* granted = std::get_if<api::LeaseGranted>(&message)) {
    BERTH_DO(grant(std::move(*granted)));
  }
  auto* standing = std::get_if<Standing>(&message);
  if (standing == nullptr) return std::nullopt;
  return std::move(*standing);
}

std::expected<std::optional<Standing>, Refusal> LeaseWait::look() {
  Body& body = *body_;
  if (!body.socket) return std::nullopt;
  auto received = sys::receive_message(body.socket.get());
  if (!received) return std::unexpected(Refusal{received.error()});
  body.text += received->text;
  std::ranges::move(received->descriptors, std::back_inserter(body.descriptors));
  std::optional<Standing> standing;
  while (const std::size_t length = api::first_record(body.text)) {
    auto message = api::decode_message(std::string_view(body.text).substr(0, length));
    body.text.erase(0, length);
    if (!message) return std::unexpected(Refusal{message.error()});
    auto taken = body.take(std::move(*message));
    if (!taken) return std::unexpected(Refusal{taken.error()});
    if (*taken) standing = std::move(**taken);
    if (body.refused) {
      body.helper.wait(kEndsWithin);
      body.socket.close();
      return std::unexpected(
          Refusal{body.refused->error, api::with_devices(body.refused->verdicts, body.snapshot)});
    }
  }
  if (received->ended && !body.lease) {
    body.socket.close();
    return std::unexpected(body.ended());
  }
  return standing;
}

std::expected<Lease, Refusal> lease(const Request& request, const LeaseTerms& terms) {
  auto wait = LeaseWait::start(request, terms);
  if (!wait) return std::unexpected(Refusal{wait.error()});
  while (wait->lease() == nullptr) {
    wait->sleep();
    BERTH_DO(wait->look());
  }
  return std::move(*wait->lease());
}

}  // namespace berth
