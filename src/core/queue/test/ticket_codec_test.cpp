#include "berth/queue/ticket_codec.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <rapidcheck.h>

#include <algorithm>

#include "berth/base/record_fields.h"
#include "berth/queue/schedule.h"
#include "berth/queue/test/any_order.h"
#include "berth/request/request.h"
#include "berth/verdict/ledger.h"
#include "property.h"

namespace berth::ticket_codec_test {
namespace {

using test::any_order;

Ticket example() {
  Ticket ticket;
  ticket.id = {0x25b3c1d0e42};
  ticket.taker.pid = 4711;
  ticket.taker.start_ticks = 123456;
  ticket.joined_s = 1732189854;
  ticket.since_s = ticket.joined_s;
  ticket.count = 2;
  ticket.time_s = 7200;
  ticket.request = "2 whole GPUs";
  ticket.command = "python train.py --epochs 3";
  ticket.note = "sweep 3";
  ticket.candidates = {"GPU-a", "GPU-b", "GPU-c"};
  return ticket;
}

Ticket granted(Ticket ticket) {
  ticket.phase = TicketPhase::granted;
  ticket.since_s = ticket.joined_s + 60;
  ticket.granted_boot_s = 2520;
  ticket.granted_boot_ms = 417;
  ticket.devices = {"GPU-a", "GPU-c"};
  return ticket;
}

TEST_CASE("a ticket's text is as documented") {
  CHECK(encode_ticket(granted(example())) ==
        "berth-ticket 1\n"
        "id=0000025b3c1d0e42\n"
        "pid=4711\n"
        "pid_start=123456\n"
        "joined_at=1732189854\n"
        "count=2\n"
        "time=7200\n"
        "request=2 whole GPUs\n"
        "command=python train.py --epochs 3\n"
        "note=sweep 3\n"
        "candidate=GPU-a\n"
        "candidate=GPU-b\n"
        "candidate=GPU-c\n"
        "granted_at=1732189914\n"
        "granted_boot=2520\n"
        "granted_boot_ms=417\n"
        "device=GPU-a\n"
        "device=GPU-c\n"
        "end\n");
}

TEST_CASE("what was written is read again") {
  holds_for_any("decode(encode(x)) == x, but for what the kernel says", [] {
    Ticket ticket = example();
    ticket.id.value = *rc::gen::inRange<std::uint64_t>(1, UINT64_MAX);
    ticket.taker.pid = *rc::gen::arbitrary<std::uint32_t>();
    ticket.command = *rc::gen::container<std::string>(rc::gen::arbitrary<char>());
    ticket.command.resize(std::min<std::size_t>(ticket.command.size(), 500));
    std::erase(ticket.command, '\0');
    ticket.shared = *rc::gen::arbitrary<bool>();
    ticket.promise_bytes = ticket.shared ? *rc::gen::arbitrary<std::uint64_t>() : 0;
    ticket.time_s.reset();
    if (*rc::gen::arbitrary<bool>()) ticket.time_s = *rc::gen::inRange<std::int64_t>(1, kLongestTimeS + 1);
    if (*rc::gen::arbitrary<bool>()) ticket.yield_s = *rc::gen::inRange<std::int64_t>(1, 1000);
    if (const QueueOrder order = any_order(); has_numbers(order))
      ticket.number = OrderNumber{order, *rc::gen::inRange(0, 1000)};
    if (*rc::gen::arbitrary<bool>())
      ticket.expected_s = *rc::gen::inRange(kLeastExpectedS, kMostExpectedS + 1);
    ticket.helper.pid = *rc::gen::inRange<std::uint32_t>(0, 3);
    ticket.helper.start_ticks = ticket.helper.pid == 0 ? 0 : *rc::gen::arbitrary<std::uint64_t>();
    ticket.kept = *rc::gen::arbitrary<bool>();
    ticket.job.pid = *rc::gen::inRange<std::uint32_t>(0, 3);
    ticket.job.start_ticks = ticket.job.pid == 0 ? 0 : *rc::gen::arbitrary<std::uint64_t>();
    ticket.slurm_job = *rc::gen::inRange<std::uint32_t>(0, 3);
    ticket.origin = *rc::gen::element<std::string>("", "desk1:1234", "\n\x1b");
    if (*rc::gen::arbitrary<bool>()) ticket = granted(ticket);
    const auto decoded = decode_ticket(encode_ticket(ticket));
    RC_ASSERT(decoded.has_value());
    RC_ASSERT(*decoded == ticket);
  });
}

TEST_CASE("a ticket fits into its file from the start, however long its words and its list") {
  holds_for_any("at most 4096 bytes, granted or not", [] {
    Ticket ticket = example();
    ticket.command = std::string(*rc::gen::inRange<std::size_t>(0, 9000), 'x');
    ticket.note = std::string(*rc::gen::inRange<std::size_t>(0, 9000), '\n');
    ticket.origin = std::string(*rc::gen::inRange<std::size_t>(0, 9000), 'x');
    ticket.candidates.assign(*rc::gen::inRange<std::size_t>(1, 200),
                             "MIG-2f2b3a1c-6c1e-5d5b-8f0a-0123456789ab");
    ticket.count = *rc::gen::inRange(1U, 33U);
    Ticket lease = granted(ticket);
    lease.devices.assign(ticket.count, ticket.candidates.front());
    RC_ASSERT(encode_ticket(ticket).size() <= kTicketMaxBytes);
    RC_ASSERT(encode_ticket(lease).size() <= kTicketMaxBytes);
    const auto decoded = decode_ticket(encode_ticket(lease));
    RC_ASSERT(decoded.has_value());
    RC_ASSERT(decoded->devices == lease.devices);
    RC_ASSERT(is_candidate(*decoded, ticket.candidates.front()));
  });
}

/// A ticket of this order that says everything that a ticket can, each at its longest.
Ticket longest(QueueOrder order) {
  Ticket ticket = example();
  ticket.id = {UINT64_MAX};
  ticket.taker.pid = ticket.helper.pid = ticket.job.pid = ticket.slurm_job = UINT32_MAX;
  ticket.taker.start_ticks = ticket.helper.start_ticks = ticket.job.start_ticks = UINT64_MAX;
  ticket.kept = true;
  ticket.joined_s = kLatestSeconds - 1;
  ticket.since_s = ticket.joined_s;
  ticket.shared = true;
  ticket.promise_bytes = UINT64_MAX;
  ticket.time_s = kLongestTimeS;
  ticket.yield_s = kLongestYieldS;
  if (has_numbers(order)) ticket.number = OrderNumber{order, INT64_MAX};
  ticket.expected_s = kMostExpectedS;
  ticket.longest_wait_s = kLongestTimeS;
  ticket.joined_boot_ms = kLatestSeconds * 1000;
  for (std::string* words : {&ticket.origin, &ticket.request, &ticket.command, &ticket.note})
    *words = std::string(5000, '\n');
  return ticket;
}

TEST_CASE("a lease of as many devices as may be asked for fits into its ticket, and so do eight extensions") {
  const std::string uuid = "MIG-GPU-8a1c53a0-56b2-4c4e-9d5e-0a6f3d9b1c11/100/100";
  for (const OrderRow& row : order_rows()) {
    CAPTURE(row.name);
    Ticket ticket = longest(row.order);
    ticket.count = kMostDevices;
    ticket.candidates.assign(112, uuid);
    CHECK(encode_ticket(ticket).size() <= kTicketMaxBytes);
    Ticket lease = ticket;
    lease.phase = TicketPhase::granted;
    lease.granted_boot_s = kLatestSeconds;
    lease.granted_boot_ms = 999;
    lease.devices.assign(kMostDevices, uuid);
    std::string text = encode_ticket(lease);
    CHECK(text.size() <= kTicketMaxBytes);
    for (int i = 0; i < 8; ++i) {
      const auto longer = with_time(text, kLongestTimeS);
      REQUIRE(longer);
      text = *longer;
    }
    const auto read = decode_ticket(text);
    REQUIRE(read);
    CHECK(read->devices == lease.devices);
    CHECK(read->number == lease.number);
  }
}

TEST_CASE("a ticket says the order that it keeps in the keys of that order, and in no others") {
  for (const OrderRow& row : order_rows()) {
    CAPTURE(row.name);
    const auto number = [&](std::string_view key) {
      return has_numbers(row.order) ? fmt::format("{}=7\n", key) : "";
    };
    Ticket ticket = example();
    if (has_numbers(row.order)) ticket.number = OrderNumber{row.order, 7};
    std::string text = encode_ticket(example());
    const std::size_t at = text.find("request=");
    text.insert(at, number(row.keys.number));
    CHECK(encode_ticket(ticket) == text);
    CHECK(decode_ticket(text) == ticket);
    ticket.expected_s = 900;
    text = encode_ticket(example());
    text.insert(at, number(row.keys.number_beside_expected) + fmt::format("{}=900\n", row.keys.expected));
    CHECK(encode_ticket(ticket) == text);
    CHECK(decode_ticket(text) == ticket);
  }
}

TEST_CASE("a ticket of an order that is not known, or with a number that is none, waits as it came") {
  for (const char* lines : {"unheard_of=3\nunheard_of_expected=900\nlongest_wait=90000\n", "turn=-1\n",
                            "turn=many\n", "turn=3\nturn=9223372036854775808\n"}) {
    CAPTURE(lines);
    std::string text = encode_ticket(example());
    text.insert(text.find("request="), lines);
    const auto read = decode_ticket(text);
    REQUIRE(read.has_value());
    CHECK_FALSE(read->number);
    CHECK_FALSE(may_go_past(*read));
  }
}

TEST_CASE("a grant adds to the text and changes nothing before, so a half-written one has no end") {
  for (unsigned words = 0; words < 3000; words += 97) {
    for (std::size_t candidates = 1; candidates < 100; candidates += 3) {
      Ticket ticket = example();
      ticket.command = std::string(words, 'x');
      ticket.candidates.assign(candidates, "MIG-2f2b3a1c-6c1e-5d5b-8f0a-0123456789ab");
      ticket.count = 8;
      Ticket lease = granted(ticket);
      lease.devices.assign(ticket.count, ticket.candidates.front());
      const std::string waiting = encode_ticket(ticket);
      CAPTURE(words);
      CAPTURE(candidates);
      REQUIRE(waiting.ends_with("end\n"));
      REQUIRE(encode_ticket(lease).starts_with(waiting.substr(0, waiting.size() - 4)));
    }
  }
}

TEST_CASE("what a ticket has not is not in its text, and a kept one says for whom") {
  const std::string plain = encode_ticket(example());
  for (const char* key : {"helper_pid", "kept=", "job_pid", "slurm_job", "asked_at", "shared=",
                          "promise_bytes=", "yield=", "turn=", "granted_at=", "granted_boot", "device="})
    CHECK_FALSE(plain.contains(key));
  Ticket ticket = example();
  ticket.kept = true;
  ticket.job.pid = 5;
  ticket.slurm_job = 12;
  ticket.shared = true;
  CHECK(encode_ticket(ticket).contains(
      "\npid_start=123456\nkept=1\njob_pid=5\njob_pid_start=0\nslurm_job=12\njoined_at="));
  ticket.yield_s = 30;
  ticket.number = OrderNumber{QueueOrder::fair, 4};
  CHECK(encode_ticket(ticket).contains(
      "\ncount=2\nshared=1\npromise_bytes=0\ntime=7200\nyield=30\nturn=4\nrequest="));
}

TEST_CASE("marks that are not 1 and keys in sections are ignored, as by every version") {
  std::string text = encode_ticket(example());
  text.insert(text.find("count="), "kept=yes\nshared=0\n");
  text.insert(text.find("end\n"), "[later]\npid=1\ngranted_at=1\n");
  const auto decoded = decode_ticket(text);
  REQUIRE(decoded.has_value());
  CHECK(*decoded == example());
}

TEST_CASE("what is no time of a clock makes a ticket malformed") {
  for (const auto& [key, time] : {std::pair{"joined_at", "-1"},
                                  {"joined_at", "9000000000000000000"},
                                  {"granted_at", "-9000000000000000000"},
                                  {"granted_at", "100000000000"}}) {
    std::string text = encode_ticket(granted(example()));
    const std::size_t begin = text.find(key) + std::string_view(key).size() + 1;
    text.replace(begin, text.find('\n', begin) - begin, time);
    const auto decoded = decode_ticket(text);
    REQUIRE(!decoded.has_value());
    CHECK(decoded.error().message == fmt::format("the value of \"{}\" is malformed", key));
  }
}

TEST_CASE("a ticket without times, as older programs write it, says none and has no end") {
  std::string text = encode_ticket(granted(example()));
  for (const std::string line : {"time=7200\n", "granted_boot=2520\n", "granted_boot_ms=417\n"})
    text.erase(text.find(line), line.size());
  const auto decoded = decode_ticket(text);
  REQUIRE(decoded.has_value());
  CHECK(decoded->time_s == std::nullopt);
  CHECK(decoded->granted_boot_s == std::nullopt);
  CHECK(said_end(*decoded) == std::nullopt);
  CHECK(decoded->phase == TicketPhase::granted);
}

TEST_CASE("times that nobody can mean say nothing, and leave the ticket as good as it is") {
  const Ticket lease = granted(example());
  CHECK(said_end(lease) == 9720);
  CHECK(said_end(example()) == std::nullopt);
  for (const char* forged :
       {"0", "-1", "31536001", "1000000000000000000000000000000", "soon", "", "2h", "1.5"}) {
    CAPTURE(forged);
    std::string text = encode_ticket(lease);
    text.replace(text.find("time=7200"), 9, fmt::format("time={}", forged));
    const auto decoded = decode_ticket(text);
    REQUIRE(decoded.has_value());
    CHECK(decoded->time_s == std::nullopt);
    CHECK(decoded->devices == lease.devices);
    CHECK(said_end(*decoded) == std::nullopt);
  }
  for (const char* forged : {"-1", "100000000001", "1000000000000000000000000000000", "never"}) {
    CAPTURE(forged);
    std::string text = encode_ticket(lease);
    text.replace(text.find("boot=2520"), 9, fmt::format("boot={}", forged));
    const auto decoded = decode_ticket(text);
    REQUIRE(decoded.has_value());
    CHECK(decoded->granted_boot_s == std::nullopt);
    CHECK(said_end(*decoded) == std::nullopt);
  }
}

TEST_CASE("the second of a grant is one line, for who knows no more, and its milliseconds are another") {
  Ticket lease = granted(example());
  std::string text = encode_ticket(lease);
  // What such a program reads, and what it writes.
  text.erase(text.find("granted_boot_ms=417\n"), 20);
  CHECK(text.contains("\ngranted_boot=2520\ndevice="));
  lease.granted_boot_ms.reset();
  CHECK(decode_ticket(text) == lease);
  CHECK(encode_ticket(lease) == text);
  for (const char* forged : {"-1", "1000", "4.5", "", "soon"}) {
    CAPTURE(forged);
    std::string odd = text;
    odd.insert(odd.find("device="), fmt::format("granted_boot_ms={}\n", forged));
    CHECK(decode_ticket(odd) == lease);
  }
}

TEST_CASE("of several times the last one counts") {
  std::string text = encode_ticket(granted(example()));
  text.insert(text.find("end\n"), "time=9000\n");
  const auto decoded = decode_ticket(text);
  REQUIRE(decoded.has_value());
  CHECK(decoded->time_s == 9000);
}

TEST_CASE("an extension adds a line to a lease's text and changes nothing before") {
  holds_for_any("there is room for eight, and the last counts", [] {
    Ticket ticket = example();
    ticket.command = std::string(*rc::gen::inRange<std::size_t>(0, 6000), 'x');
    std::string text = encode_ticket(granted(ticket));
    for (std::int64_t time_s = kLongestTimeS - 7; time_s <= kLongestTimeS; ++time_s) {
      const auto longer = with_time(text, time_s);
      RC_ASSERT(longer.has_value());
      RC_ASSERT(longer->starts_with(text.substr(0, text.size() - 4)));
      RC_ASSERT(decode_ticket(*longer)->time_s == time_s);
      text = *longer;
    }
    RC_ASSERT(text.size() <= kTicketMaxBytes);
  });
}

TEST_CASE("a ticket that is full, or cut off, is not extended") {
  std::string text = encode_ticket(granted(example()));
  CHECK(with_time(text.substr(0, text.size() - 4), 1).error().message == "its ticket has no end");
  CHECK(with_time("", 1).error().message == "its ticket has no end");
  while (const auto longer = with_time(text, 9)) text = *longer;
  CHECK(text.size() <= kTicketMaxBytes);
  CHECK(with_time(text, 9).error().message == "its ticket is full: it was added to too often");
}

TEST_CASE(
    "a lease that begins and ceases to yield again and again is never full, and the last change counts") {
  Ticket ticket = example();
  for (const std::optional<std::int64_t> at_join : {std::optional<std::int64_t>(30), {}}) {
    ticket.yield_s = at_join;
    std::string text = encode_ticket(granted(ticket));
    const std::size_t most = text.size() + std::string_view("yield=0030\n").size();
    for (int change = 0; change < 1000; ++change) {
      const std::optional<std::int64_t> yield_s =
          change % 2 == 0 ? std::nullopt : std::optional<std::int64_t>(1 + change * 7 % kLongestYieldS);
      const auto changed = with_yield(text, yield_s);
      REQUIRE(changed.has_value());
      text = *changed;
      CHECK(text.size() == most);
      CHECK(decode_ticket(text)->yield_s == yield_s);
    }
    CHECK(with_yield(text.substr(0, text.size() - 4), 1).error().message == "its ticket has no end");
  }
}

TEST_CASE("who asks that a lease ends, and why, is added to its text, and the last one counts") {
  const std::string text = encode_ticket(granted(example()));
  CHECK(decode_ticket(text)->release == ReleaseCall{});
  const auto asked = with_release(text, {0, 77, "the disk\nis full"});
  REQUIRE(asked.has_value());
  CHECK(asked->starts_with(text.substr(0, text.size() - 4)));
  CHECK(decode_ticket(*asked)->release == ReleaseCall{0, 77, "the disk\nis full"});
  const auto again = with_release(*asked, {1001, 78, "mine"});
  REQUIRE(again.has_value());
  CHECK(decode_ticket(*again)->release == ReleaseCall{1001, 78, "mine"});
  // What is written is what is read, also after a grant of an inner lease has copied it.
  CHECK(decode_ticket(encode_ticket(*decode_ticket(*again))) == decode_ticket(*again));
}

TEST_CASE("a long reason is cut to fit, and leaves the room for extensions") {
  std::string long_reason;
  for (int i = 0; i < 3000; ++i) long_reason += "ü";
  auto text = with_release(encode_ticket(granted(example())), {0, 77, long_reason});
  REQUIRE(text.has_value());
  const std::string because = decode_ticket(*text)->release.because;
  CHECK(because.size() > 500);
  CHECK(long_reason.starts_with(because));
  for (int i = 0; i < 8; ++i) {
    text = with_time(*text, kLongestTimeS);
    REQUIRE(text.has_value());
  }
}

TEST_CASE("a long command is cut between characters") {
  Ticket ticket = example();
  for (int i = 0; i < 3000; ++i) ticket.command += "ü";
  const auto decoded = decode_ticket(encode_ticket(ticket));
  REQUIRE(decoded.has_value());
  CHECK(decoded->command.size() < ticket.command.size());
  CHECK(decoded->command.ends_with("ü"));
}

TEST_CASE("what cannot be understood is an error that says why") {
  const std::string good = encode_ticket(example());
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    text.replace(text.find(from), from.size(), to);
    return text;
  };
  struct Row {
    std::string text;
    const char* reason;
  };
  for (const Row& row :
       {Row{with("ticket 1", "ticket 2"), "version 2"}, Row{with("pid=4711", "pid=many"), "\"pid\""},
        Row{with("id=0000025b3c1d0e42\n", ""), "no id"}, Row{with("=0000025b", "=25b"), "\"id\""},
        Row{good.substr(0, good.size() - 4), ""}, Row{"", ""}}) {
    CAPTURE(row.text);
    const auto decoded = decode_ticket(row.text);
    REQUIRE_FALSE(decoded.has_value());
    CHECK(decoded.error().message.find(row.reason) != std::string::npos);
  }
}

TEST_CASE("lines of newer writers are ignored") {
  std::string text = encode_ticket(example());
  text.insert(text.find("count="), "colour=green\n");
  const auto decoded = decode_ticket(text);
  REQUIRE(decoded.has_value());
  CHECK(*decoded == example());
}

TEST_CASE("ids are 16 hexadecimal digits and nothing else") {
  CHECK(to_text(TicketId{255}) == "00000000000000ff");
  CHECK(ticket_id_from_text("00000000000000ff") == TicketId{255});
  for (const char* wrong :
       {"", "ff", "00000000000000FF", "00000000000000fg", "000000000000000ff", " 0000000000000ff"}) {
    CAPTURE(wrong);
    CHECK_FALSE(ticket_id_from_text(wrong).has_value());
  }
}

TEST_CASE("tickets are rivals when a device could be given to either") {
  Ticket a;
  Ticket b;
  CHECK_FALSE(are_rivals(a, b));
  a.candidates = {"GPU-a", "GPU-b"};
  CHECK_FALSE(are_rivals(a, b));
  b.candidates = {"GPU-c"};
  CHECK_FALSE(are_rivals(a, b));
  b.candidates = {"GPU-c", "GPU-b"};
  CHECK(are_rivals(a, b));
  b.candidates = {std::string(kEveryDevice)};
  CHECK(are_rivals(a, b));
  CHECK(are_rivals(b, a));
  CHECK(are_rivals(b, b));
}

}  // namespace
}  // namespace berth::ticket_codec_test
