#include "berth/view/verdict_text.h"
#include "berth/view/refusal.h"
#include "berth/view/text.h"

#include <doctest/doctest.h>

namespace berth::view::verdict_text_test {
namespace {

constexpr std::int64_t kNow = 1'795'265'321;  // 2026-11-21 12:48:41 UTC
const Style kStyle{.width = 80, .now_s = kNow};

Device gpu(unsigned index) {
  Device device;
  device.index = index;
  device.uuid = "GPU-" + std::to_string(index);
  return device;
}

Culprit alice() {
  return {"alice", 4711, "/usr/bin/python3 -u /home/alice/train.py --epochs 9", kNow - 7200, {}, ""};
}

Verdict failing(Clause clause, std::string reason, std::vector<Culprit> culprits = {}) {
  return {"GPU-3", clause, std::move(reason), std::move(culprits), {}};
}

TEST_CASE("a command is named by what people recognise") {
  struct Row {
    const char* command;
    const char* name;
  };
  for (const Row& row :
       {Row{"/usr/bin/python3 -u /home/a/train.py --epochs 3", "train.py"},
        Row{"python -m torch.distributed.run x.py", "torch.distributed.run"},
        Row{"python3.11 -c import", "python3.11"}, Row{"/opt/bin/jupyter-lab --no-browser", "jupyter-lab"},
        Row{"bash run.sh", "run.sh"}, Row{"python", "python"}, Row{"shutter x", "shutter"}, Row{"", ""},
        Row{"\x1b[2J", "\\x1b[2J"}}) {
    CHECK(short_command(row.command) == row.name);
  }
}

TEST_CASE("a verdict in a sentence says who, what, since when") {
  const Device device = gpu(3);
  auto lease = alice();
  lease.lease = TicketId{1};
  lease.note = "paper deadline";
  CHECK(sentence(failing(Clause::not_leased, "leased", {lease}), device, kStyle) ==
        "leased by alice, train.py, since 10:48 (2 h) \"paper deadline\"");
  CHECK(sentence(failing(Clause::no_outsider, "used", {alice()}), device, kStyle) ==
        "used without a lease by alice, train.py (pid 4711), since 10:48 (2 h)");
  CHECK(sentence(failing(Clause::no_outsider, "used", {{}, {}, {}, {}, {}}), device, kStyle) ==
        "used without a lease by an unknown user; an unknown user; an unknown user; and 2 more");
  CHECK(sentence(failing(Clause::thresholds, "util 40 %, 5 % allowed"), device, kStyle) ==
        "util 40 %, 5 % allowed");
  CHECK(sentence({"GPU-3", {}, "", {}, 80ULL << 30U}, device, kStyle) == "free, 80 GiB of memory");
  CHECK(sentence({"GPU-3", {}, "", {}, {}}, device, kStyle) == "free");
  Device worn = gpu(3);
  worn.health.ecc_uncorrected = 1;
  worn.health.row_remap_pending = true;
  CHECK(sentence({"GPU-3", {}, "", {}, {}}, worn, kStyle) ==
        "free; taken after the others: faulty memory waits for a reset, 1 uncorrected memory error");
  worn.health.recovery_action = "reset";
  CHECK(short_state(failing(Clause::healthy, "x"), worn, kStyle).text == "needs a reset");
  worn.health.row_remap_failed = true;
  CHECK(short_state(failing(Clause::healthy, "x"), worn, kStyle).text == "unhealthy");
  Device lost = gpu(3);
  lost.state = DeviceState::lost;
  lost.state_reason = "fell off the bus (15)";
  CHECK(sentence(failing(Clause::healthy, "lost"), lost, kStyle) == "lost: fell off the bus (15)");
}

TEST_CASE("every clause has a word for the table, and none is coloured as free") {
  for (const Clause clause :
       {Clause::healthy, Clause::not_excluded, Clause::in_mask, Clause::static_filters, Clause::not_leased,
        Clause::not_draining, Clause::no_outsider, Clause::no_hidden_holder, Clause::compute_mode,
        Clause::thresholds, Clause::within_limit, Clause::not_awaited}) {
    const ShortState state = short_state(failing(clause, "x"), gpu(3), kStyle);
    CHECK(!state.text.empty());
    CHECK(state.text.size() <= 16);
    CHECK(state.tone != Tone::good);
  }
  CHECK(short_state(failing(Clause::not_leased, "", {alice()}), gpu(3), kStyle).text == "leased alice 2 h");
  Verdict shared = failing(Clause::not_leased, "", {alice()});
  shared.free_bytes = 12ULL << 30U;
  CHECK(short_state(shared, gpu(3), kStyle).text == "leased alice 2 h, 12 GiB left");
  shared.free_bytes = 0;
  CHECK(short_state(shared, gpu(3), kStyle).text == "leased alice 2 h");
  CHECK(short_state(failing(Clause::not_awaited, "", {alice()}), gpu(3), kStyle).text == "kept for alice");
}

TEST_CASE("text is wrapped at words, the lines that follow under the first") {
  CHECK(wrapped("used without a lease by alice", 20, 4) == "used without a\n    lease by alice");
  CHECK(wrapped("averyveryverylongword x", 10, 2) == "averyveryverylongword\n  x");
  CHECK(wrapped("", 10, 2).empty());
}

TEST_CASE("of lines, only those are folded that are too wide and not laid out yet") {
  const Style narrow{.width = 20};
  CHECK(folded("berth: it is leased by alice\nGPU 0  leased by bob\n", narrow) ==
        "berth: it is leased\nby alice\nGPU 0  leased by bob\n");
  CHECK(folded("  a line that is laid out  already\n", narrow) == "  a line that is laid out  already\n");
  CHECK(folded("\r\x1b[Kfirst in line for ever; no GPU", narrow) == "\r\x1b[Kfirst in line for ever; no GPU");
  CHECK(folded("", narrow).empty());
}

TEST_CASE("verdicts and devices go together by their order, for a device that is lost may have no UUID") {
  Snapshot snapshot;
  Device split = gpu(0);
  split.mig_enabled = true;
  Device lost = gpu(1);
  lost.uuid = "";
  lost.state = DeviceState::lost;
  Device second = lost;
  second.index = 2;
  snapshot.devices = {split, lost, second, gpu(3)};
  const std::vector<Verdict> verdicts{
      {"", Clause::healthy, "", {}, {}}, {"", Clause::healthy, "", {}, {}}, {"GPU-3", {}, "", {}, {}}};
  const auto devices = devices_of(verdicts, snapshot);
  REQUIRE(devices.size() == 3);
  CHECK(devices[0] == &snapshot.devices[1]);
  CHECK(devices[1] == &snapshot.devices[2]);
  CHECK(devices[2] == &snapshot.devices[3]);
  CHECK(verdict_on(snapshot.devices[0], verdicts, snapshot) == nullptr);
  CHECK(verdict_on(snapshot.devices[2], verdicts, snapshot) == &verdicts[1]);
}

TEST_CASE("an explanation ends with what came of it and what would succeed") {
  Snapshot snapshot;
  snapshot.devices = {gpu(3), gpu(4)};
  const std::vector<Verdict> verdicts{failing(Clause::no_outsider, "used", {alice()}),
                                      {"GPU-4", {}, "", {}, {}}};
  Request request;
  request.count = 2;
  const std::string lines =
      "GPU 3  used without a lease by alice, train.py (pid 4711), since 10:48 (2 h)\n"
      "GPU 4  free\n";
  CHECK(explanation({request, snapshot, verdicts, 2, {"1 GPU instead of 2"}}, kStyle) ==
        "Asked for: 2 whole GPUs\n\n" + lines +
            "\nNot now: 2 wanted, 1 free.\nThese would succeed now:\n  1 GPU instead of 2\n");
  CHECK(explanation({request, snapshot, verdicts, 1, {}}, kStyle) ==
        "Asked for: 2 whole GPUs\n\n" + lines +
            "\nNever possible on this machine: 2 wanted, 1 could serve the request.\n");
  CHECK(refusal({request, snapshot, verdicts, 2, {}}, kStyle) ==
        "not now: 2 whole GPUs wanted, 1 free\n" + lines);
  Standing standing{.position = 3, .waited = std::chrono::seconds(7)};
  standing.behind.emplace();
  standing.behind->user = "bob";
  standing.behind->command = "python train.py";
  CHECK(refusal({request, snapshot, verdicts, 2, {}, &standing}, kStyle) ==
        "not now: 2 whole GPUs wanted, 1 free; earlier requests come first: you would be no. 3 in line, "
        "behind bob "
        "(train.py)\n" +
            lines);
  standing.starts_at_s = kStyle.now_s + 3600;
  CHECK(explanation({request, snapshot, verdicts, 2, {}, &standing}, kStyle)
            .ends_with("\nNot now: 2 wanted, 1 free.\nIf you asked now, you would be no. 3 in line, to start "
                       "about 13:48; behind bob\n"
                       "(train.py).\n"));
}

}  // namespace
}  // namespace berth::view::verdict_text_test
