#include "berth/lease/session.h"

#include <doctest/doctest.h>

#include "berth/lease/test/scene.h"

namespace berth::leasing::session_test {
namespace {

/// A driver that tells everything but how its GPUs are connected.
class WithoutTopology : public FakeSource {
 public:
  Result<Snapshot> read(ReadingSet readings) override {
    if (readings.has(ReadingKind::topology)) return fail(ErrorCode::failure, "the driver crashed");
    return FakeSource::read(readings);
  }
};

/// A machine of H100, asked through a session.
struct Asked {
  WithoutTopology source;
  int closed = 0;

  explicit Asked(unsigned devices) {
    for (unsigned index = 0; index < devices; ++index) source.machine.devices.push_back(gpu(index));
  }
  Session session(LookOptions options = {}) {
    Domain domain;
    domain.store = std::make_unique<store::MemoryStore>(std::make_shared<store::MemoryBooks>());
    return {std::move(domain),
            {[this]() -> Result<source::Source*> { return &source; }, [this] { ++closed; }},
            std::move(options)};
  }
};

Request devices(unsigned count) {
  Request request;
  request.count = count;
  return request;
}

/// What is wrong with the answer, without the value.
template <class Yes>
ExplainedRefusal refusal(Result<std::variant<Yes, ExplainedRefusal>> answer) {
  if (!answer) FAIL(answer.error().message);
  REQUIRE(std::holds_alternative<ExplainedRefusal>(*answer));
  return std::get<ExplainedRefusal>(std::move(*answer));
}

Session session_on(Asked& machine, const std::shared_ptr<store::MemoryBooks>& books) {
  Domain domain;
  domain.store = std::make_unique<store::MemoryStore>(books);
  LookOptions in_order;
  in_order.policy.queue.backfill = false;
  return {std::move(domain), {[&]() -> Result<source::Source*> { return &machine.source; }, [] {}}, in_order};
}

TEST_CASE("a topology that cannot be had is a note on the choice, picked or leased") {
  Asked machine(4);
  const Session session = machine.session();
  const auto picked = session.pick(devices(2));
  if (!picked) FAIL(picked.error().message);
  REQUIRE(std::holds_alternative<PickedDevices>(*picked));
  CHECK(notes_on(std::get<PickedDevices>(*picked)) ==
        std::vector<std::string>{"topology is not known: took the lowest index"});
  const auto leased = session.acquire(devices(2), {});
  if (!leased) FAIL(leased.error().message);
  REQUIRE(std::holds_alternative<HeldLease>(*leased));
  CHECK(notes_on(std::get<HeldLease>(*leased)) == notes_on(std::get<PickedDevices>(*picked)));
}

TEST_CASE("a refusal has one code, the verdict on each device, and what would succeed") {
  Asked machine(2);
  const Session session = machine.session();
  const ExplainedRefusal never = refusal(session.pick(devices(3)));
  CHECK(never.code == ErrorCode::impossible);
  CHECK(never.possible == 2);
  CHECK(never.verdicts.size() == 2);
  machine.source.machine.devices[0].memory.used_bytes = 70 * kGiB;
  const ExplainedRefusal now = refusal(session.pick(devices(2)));
  CHECK(now.code == ErrorCode::not_now);
  CHECK(now.verdicts[0].failed == Clause::no_hidden_holder);
  CHECK(now.verdicts[1].free());
  CHECK(now.looser == std::vector<std::string>{"1 GPU instead of 2"});
}

TEST_CASE("a lease is refused as a pick is") {
  Asked machine(2);
  const Session session = machine.session();
  machine.source.machine.devices[0].memory.used_bytes = 70 * kGiB;
  const ExplainedRefusal picked = refusal(session.pick(devices(2)));
  const ExplainedRefusal leased = refusal(session.acquire(devices(2), {}));
  CHECK(leased.code == picked.code);
  CHECK(leased.possible == picked.possible);
  CHECK(leased.verdicts == picked.verdicts);
  CHECK(leased.looser == picked.looser);
  CHECK(machine.closed > 0);
  const ExplainedRefusal never = refusal(session.acquire(devices(3), {}));
  CHECK(never.code == ErrorCode::impossible);
  CHECK(never.verdicts == leased.verdicts);
  Patience patience;
  patience.wait = true;
  patience.limit = std::chrono::milliseconds(1);
  const ExplainedRefusal late = refusal(session.acquire(devices(2), {}, patience));
  CHECK(late.code == ErrorCode::timed_out);
  CHECK(late.waited == std::chrono::milliseconds(1));
}

TEST_CASE("who is refused because of the line is told behind whom he stands") {
  Asked machine(2);
  const auto books = std::make_shared<store::MemoryBooks>();
  const Session session = session_on(machine, books);
  store::MemoryStore other(books);
  Ticket earlier;
  earlier.candidates = {"GPU-a", "GPU-b"};
  earlier.command = "the earlier one";
  const auto waits =
      other.join(earlier, [](const Ledger&, TicketId) -> Result<Decision> { return Decision(Stay{}); });
  const ExplainedRefusal refused = refusal(session.acquire(devices(1), {}));
  REQUIRE(refused.standing.has_value());
  CHECK(refused.standing->position == 2);
  CHECK(refused.standing->behind->command == "the earlier one");
}

TEST_CASE("a time beyond the site's is refused with the figures, and one who says none has the site's") {
  Asked machine(2);
  LookOptions options;
  options.policy.most_time_s = 2 * 3600;
  const Session session = machine.session(options);
  Request request = devices(1);
  request.time_s = 3 * 3600;
  const auto refused = session.acquire(request, {});
  REQUIRE(!refused);
  CHECK(refused.error().code == ErrorCode::impossible);
  CHECK(
      refused.error().message ==
      "the request says 3h, and a lease here lasts 2h at most (time in the site file): ask for that or less");
  CHECK(session.pick(request).error() == refused.error());
  CHECK(session.why(request).error() == refused.error());
  for (const std::optional<std::int64_t> said :
       {std::optional<std::int64_t>(), std::optional<std::int64_t>(60)}) {
    request.time_s = said;
    const auto leased = session.acquire(request, {});
    if (!leased) FAIL(leased.error().message);
    CHECK(std::get<HeldLease>(*leased).ticket().time_s == said.value_or(7200));
  }
}

TEST_CASE("with a key that is not understood one looks, and nothing is granted") {
  Asked machine(2);
  LookOptions options;
  options.policy.not_understood = {"f:1: unknown key 'x'"};
  const Session session = machine.session(options);
  CHECK(session.pick(devices(1)).error().message == "f:1: unknown key 'x'");
  CHECK(session.acquire(devices(1), {}).error().message == "f:1: unknown key 'x'");
  CHECK(session.why(devices(1)).value().verdicts[0].free());
  CHECK(notes_on(session.look(devices(1)).value()) ==
        std::vector<std::string>{"f:1: unknown key 'x'; nothing is granted until it is corrected"});
}

TEST_CASE("what would succeed now is not what somebody waits for") {
  Asked machine(2);
  const auto books = std::make_shared<store::MemoryBooks>();
  const Session session = session_on(machine, books);
  machine.source.machine.devices[0].memory.used_bytes = 70 * kGiB;
  REQUIRE(session.why(devices(2)).value().looser.size() == 1);
  store::MemoryStore other(books);
  Ticket draft;
  draft.count = 2;
  draft.candidates = {"GPU-a", "GPU-b"};
  const auto waits = other.join(draft, [](const Ledger&, TicketId) { return Decision(Stay{}); });
  REQUIRE(waits.has_value());
  CHECK(session.why(devices(2)).value().looser.empty());
}

TEST_CASE("a random order has a seed, and says which") {
  Asked machine(2);
  Request any;
  any.order = Order::random;
  const auto found = machine.session().why(any);
  REQUIRE(found.has_value());
  CHECK(found->request.seed.has_value());
  any.seed = 7;
  CHECK(machine.session().why(any)->request.seed == 7U);
}

TEST_CASE("processes set aside count as if they were not there") {
  Asked machine(1);
  Process process;
  process.pid = 4242;
  process.kind = ProcessKind::compute;
  process.used_bytes = 10 * kGiB;
  machine.source.machine.devices[0].processes = {process};
  machine.source.machine.devices[0].memory.used_bytes = 10 * kGiB;
  Session session = machine.session();
  CHECK(session.why(devices(1))->verdicts[0].failed == Clause::no_outsider);
  session.set_aside({4242});
  CHECK(session.why(devices(1))->verdicts[0].free());
}

/// A tree: 1 has started 10, and that 20 and 30.
class Tree : public Processes {
 public:
  std::optional<sys::ProcessStat> stat(std::uint32_t pid) override {
    sys::ProcessStat stat;
    stat.process.pid = pid;
    stat.state = 'S';
    stat.parent = pid == 1 ? 0 : pid == 10 ? 1 : 10;
    return stat;
  }
  std::optional<std::uint32_t> owner(std::uint32_t) override { return 0; }
  std::optional<bool> can_write(std::uint32_t, const sys::FileIdentity&) override { return false; }
  std::optional<std::string> variable(std::uint32_t, const std::string&) override { return ""; }
};

bool is_free_for(std::uint32_t requester, std::uint32_t user, bool is_inside) {
  Scene scene(1);
  Tree tree;
  Process process;
  process.pid = user;
  process.kind = ProcessKind::compute;
  process.used_bytes = kGiB;
  scene.source.machine.devices[0].processes = {process};
  scene.source.machine.devices[0].memory.used_bytes = kGiB;
  scene.options.processes = &tree;
  scene.options.requester = requester;
  if (is_inside) scene.options.within = {scene.source.machine.devices[0].uuid};
  const auto acquired = scene.acquire();
  REQUIRE(acquired.has_value());
  return std::holds_alternative<HeldLease>(*acquired);
}

TEST_CASE("no process is an outsider to a request of its own or of a process that it descends from") {
  CHECK(is_free_for(10, 10, false));
  CHECK(is_free_for(10, 20, false));
  CHECK(!is_free_for(20, 30, false));
}

TEST_CASE("what a process descends from is its own only inside of a lease") {
  CHECK(!is_free_for(20, 10, false));
  CHECK(is_free_for(20, 10, true));
  CHECK(!is_free_for(20, 30, true));
}

}  // namespace
}  // namespace berth::leasing::session_test
