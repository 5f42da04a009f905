#include "berth/screen/model/top.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>

#include "berth/verdict/test/machine.h"
#include "property.h"

namespace berth::view::top_test {
namespace {

constexpr std::int64_t kNoon = 1'795'262'400;

Ticket lease_of_user(std::uint64_t id, unsigned gpu, const std::string& user, std::uint32_t uid) {
  Ticket lease = test::lease(id, test::uuid_of(gpu));
  lease.user = user;
  lease.uid = uid;
  lease.since_s = kNoon - 60;
  lease.command = "python train.py";
  return lease;
}

/// Four GPUs: one of bob's, one of ada's, who looks; bob waits.
TopSight busy() {
  auto report = std::make_shared<HostReport>();
  report->facts = test::machine(4);
  for (unsigned i = 0; i < 4; ++i) report->facts.snapshot.devices[i].utilization_percent = 25 * (3 - i);
  report->ledger.tickets = {lease_of_user(1, 0, "bob", 1002), lease_of_user(2, 1, "ada", 1001)};
  Ticket waiting = lease_of_user(3, 0, "bob", 1002);
  waiting.phase = TicketPhase::waiting;
  waiting.devices.clear();
  waiting.joined_s = kNoon - 30;
  report->ledger.tickets.push_back(waiting);
  report->waiters.push_back({.ticket = waiting, .starts_at_s = kNoon + 600, .reason = "0 of 4 free"});
  report->verdicts = judge(Request(), report->ledger, report->facts).value();
  auto host = std::make_shared<Host>(Host{.name = "gpu1", .seen_s = kNoon, .report = std::move(report)});
  return {.hosts = {std::move(host)}, .uid = 1001, .user = "ada"};
}

const Style kStyle{.width = 80, .now_s = kNoon};

TopScreen shown(const TopSight& sight, const TopView& view, ScreenSize size = {80, 24}) {
  return top_screen(sight, view, size, kStyle);
}

std::string text_of(const ScreenRow& row) {
  std::string text;
  for (const Cell& part : row.parts) text += part.text;
  return text;
}

std::size_t line_with(const TopScreen& screen, std::string_view words) {
  for (std::size_t i = 0; i < screen.rows.size(); ++i) {
    if (text_of(screen.rows[i]).find(words) != std::string::npos) return i;
  }
  return screen.rows.size();
}

bool has(const TopScreen& screen, std::string_view words) {
  return line_with(screen, words) < screen.rows.size();
}

/// The reader and what he looks at.
struct Reader {
  TopSight sight = busy();
  TopView view{};
  ScreenSize size{80, 24};

  TopScreen screen() const { return shown(sight, view, size); }
  TopDeed press(const Key& key) { return berth::view::press(view, key, screen(), sight); }
  TopDeed press(char32_t character) { return press(Key{KeyName::character, character}); }
  void type(std::string_view text) {
    for (const char c : text) press(static_cast<char32_t>(c));
  }
  std::string marked() const {
    const TopScreen now = screen();
    const auto row = std::ranges::find(now.rows, true, &ScreenRow::marked);
    return row == now.rows.end() ? "" : text_of(*row);
  }
  void go_to(std::string_view words) {
    press({KeyName::home});
    for (int i = 0; i < 100 && marked().find(words) == std::string::npos; ++i) press({KeyName::down});
    REQUIRE(marked().find(words) != std::string::npos);
  }
};

TEST_CASE("the screen has what a listing has, section by section, the reader's own lease first") {
  const TopScreen screen = shown(busy(), {}, {100, 24});
  CHECK(text_of(screen.rows[0]).starts_with("gpu1: 4 GPUs, 2 free, 1 waiting"));
  CHECK(text_of(screen.rows[1]) == "▾ GPUS  4");
  CHECK(has(screen, "leased bob 1 min"));
  CHECK(line_with(screen, "000002  ada") < line_with(screen, "000001  bob"));
  CHECK(has(screen, "▾ QUEUE  1"));
  CHECK(has(screen, "0 of 4 free"));
  CHECK(text_of(screen.rows.back()).starts_with("q quit"));
}

TEST_CASE("a screen is as high as it is, and no row wider") {
  holds_for_any("fits", [] {
    const auto columns = *rc::gen::inRange<std::size_t>(1, 220);
    const auto lines = *rc::gen::inRange<std::size_t>(0, 60);
    Reader reader;
    reader.size = {columns, lines, *rc::gen::arbitrary<bool>()};
    reader.sight.is_lab = *rc::gen::arbitrary<bool>();
    reader.sight.notes = {*rc::gen::arbitrary<std::string>()};
    if (*rc::gen::arbitrary<bool>()) remember(reader.sight.trends, reader.sight.hosts, kNoon - 2, 2);
    if (*rc::gen::arbitrary<bool>())
      reader.view.log = TopLog{.job = "12", .path = {}, .text = *rc::gen::arbitrary<std::string>()};
    for (const int key : *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 127))) {
      if (key < 10)
        reader.press({static_cast<KeyName>(key)});
      else
        reader.press(static_cast<char32_t>(key));
      const TopScreen screen = reader.screen();
      RC_ASSERT(screen.rows.size() == lines);
      for (const ScreenRow& row : screen.rows) RC_ASSERT(display_width(text_of(row)) <= columns);
      RC_ASSERT(std::ranges::count(screen.rows, true, &ScreenRow::marked) <= 1);
    }
  });
}

TEST_CASE("before the first look is back nothing is said of the machine") {
  const TopScreen screen = shown({}, {});
  CHECK(text_of(screen.rows[0]).starts_with("berth top: looking for the first time"));
  CHECK_FALSE(has(screen, "nobody waits"));
  CHECK_FALSE(has(screen, "GPUS"));
}

TEST_CASE("bars have the colour of what their GPU is, and begin in one column") {
  Reader reader;
  reader.size = {120, 24};
  const TopScreen screen = reader.screen();
  const auto tone = [&](std::string_view words) {
    for (const ScreenRow& row : screen.rows) {
      for (const Cell& part : row.parts) {
        if (part.text.ends_with(words)) return part.tone;
      }
    }
    return Tone::plain;
  };
  CHECK(tone(" 0%") == Tone::good);
  CHECK(tone(" 25%") == Tone::good);
  CHECK(tone(" 75%") == Tone::waiting);
  CHECK(has(screen, "███████▌░░  75%"));
  reader.size.ascii = true;
  CHECK(has(reader.screen(), "#######...  75%"));
}

TEST_CASE("a filter leaves the lines that have all its words, also those that are cut off") {
  Reader reader;
  reader.press(U'/');
  reader.type("BOB train");
  CHECK(has(reader.screen(), "/BOB train"));
  CHECK(has(reader.screen(), "LEASES  1 of 2"));
  CHECK_FALSE(has(reader.screen(), "000002  ada"));
  reader.press({KeyName::backspace});
  reader.press({KeyName::enter});
  CHECK(reader.view.filter == "BOB trai");
  reader.press({KeyName::escape});
  CHECK(has(reader.screen(), "000002  ada"));
}

TEST_CASE("while a filter is typed no letter is a command") {
  Reader reader;
  reader.press(U'/');
  CHECK(reader.press(U'q').kind == TopDeed::Kind::nothing);
  CHECK(reader.view.filter == "q");
}

TEST_CASE("a section is folded by its number or on its line, and unfolded again") {
  Reader reader;
  reader.press(U'2');
  CHECK(has(reader.screen(), "▸ LEASES  2"));
  CHECK_FALSE(has(reader.screen(), "000002  ada"));
  reader.press(U'2');
  reader.go_to("000002  ada");
  reader.press({KeyName::enter});
  CHECK(reader.marked().starts_with("▸ LEASES"));
  reader.press(U' ');
  CHECK(has(reader.screen(), "000002  ada"));
}

TEST_CASE("sorted by load, the busiest GPU comes first") {
  Reader reader;
  auto report = std::make_shared<HostReport>(*reader.sight.hosts.front()->report);
  report->facts.snapshot.devices[3].utilization_percent = 99;
  reader.size = {100, 24};
  reader.sight.hosts = {
      std::make_shared<Host>(Host{.name = "gpu1", .seen_s = kNoon, .report = std::move(report)})};
  CHECK(line_with(reader.screen(), "99%") > line_with(reader.screen(), "75%"));
  reader.press(U's');
  CHECK(has(reader.screen(), "sorted by load"));
  CHECK(line_with(reader.screen(), "99%") < line_with(reader.screen(), "75%"));
}

TEST_CASE("the cursor stays on its lease when others come and go, and near it when it ends") {
  Reader reader;
  reader.go_to("000001  bob");
  auto report = std::make_shared<HostReport>(*reader.sight.hosts.front()->report);
  report->ledger.tickets.insert(report->ledger.tickets.begin(), lease_of_user(9, 2, "ada", 1001));
  const auto host = std::make_shared<Host>(Host{.name = "gpu1", .seen_s = kNoon, .report = report});
  reader.sight.hosts = {host};
  CHECK(reader.marked().find("000001  bob") != std::string::npos);
  std::erase_if(report->ledger.tickets, [](const Ticket& ticket) { return ticket.id.value == 1; });
  CHECK_FALSE(reader.marked().empty());
}

TEST_CASE("on a low screen the cursor is always on it") {
  Reader reader;
  reader.size = {80, 8};
  for (int i = 0; i < 30; ++i) {
    CHECK_FALSE(reader.marked().empty());
    reader.press({KeyName::down});
  }
  CHECK(reader.marked().find("0 of 4 free") != std::string::npos);
  for (int i = 0; i < 30; ++i) {
    CHECK_FALSE(reader.marked().empty());
    reader.press({KeyName::up});
  }
  CHECK(reader.marked() == "▾ GPUS  4");
}

TEST_CASE("a lease of the reader's is ended after a yes and not before") {
  Reader reader;
  reader.go_to("000002  ada");
  CHECK(reader.press(U'x').kind == TopDeed::Kind::nothing);
  CHECK(has(reader.screen(), "release lease 000002 of ada, train.py?"));
  CHECK(reader.press(U'n').kind == TopDeed::Kind::nothing);
  CHECK(has(reader.screen(), "nothing was done"));
  CHECK(reader.press(U'y').kind == TopDeed::Kind::nothing);
  reader.press(U'x');
  const TopDeed deed = reader.press(U'y');
  CHECK(deed.kind == TopDeed::Kind::perform);
  CHECK(deed.words == std::vector<std::string>{"release", "000002"});
}

TEST_CASE("a lease of somebody else's is not ended") {
  Reader reader;
  reader.go_to("000001  bob");
  CHECK(reader.press(U'x').kind == TopDeed::Kind::nothing);
  CHECK_FALSE(reader.view.question);
  CHECK(has(reader.screen(), "000001 is bob's: ask bob, or an admin"));
}

TEST_CASE("what is copied is the command for the line, on another host by ssh") {
  Reader reader;
  reader.go_to("000003  bob");
  CHECK(reader.press(U'c').words == std::vector<std::string>{"berth cancel 000003"});
  reader.sight.is_lab = true;
  CHECK(reader.press(U'c').words == std::vector<std::string>{"ssh gpu1 berth cancel 000003"});
  reader.go_to("leased ada");
  CHECK(reader.press(U'c').words == std::vector<std::string>{"ssh gpu1 berth run --devices 1 -- COMMAND"});
  reader.press({KeyName::home});
  CHECK(reader.press(U'c').kind == TopDeed::Kind::nothing);
}

TEST_CASE("in a lab a request that waits on several hosts is one line, in the order of the line") {
  Reader reader;
  reader.size = {160, 24};
  reader.sight.is_lab = true;
  auto report = std::make_shared<HostReport>(*reader.sight.hosts.front()->report);
  Standing first = report->waiters.front();
  first.ticket.origin = "desk1:7";
  Standing second = first;
  second.ticket.id.value = 4;
  second.ticket.origin = "desk1:8";
  report->waiters = {first, second};
  report->ledger.tickets.back() = first.ticket;
  report->ledger.tickets.push_back(second.ticket);
  reader.sight.hosts.clear();
  for (const char* name : {"gpu1", "gpu2"})
    reader.sight.hosts.push_back(
        std::make_shared<Host>(Host{.name = name, .seen_s = kNoon, .report = report}));
  CHECK(text_of(reader.screen().rows[0]).find("2 waiting") != std::string::npos);
  CHECK(has(reader.screen(), "QUEUE  2"));
  CHECK_FALSE(has(reader.screen(), "LAB"));
  CHECK(line_with(reader.screen(), "000003  bob") < line_with(reader.screen(), "000004  bob"));
  reader.sight.order = {.standing = {{"desk1:8", 1}, {"desk1:7", 2}}};
  CHECK(has(reader.screen(), "HOST     LAB  POS"));
  CHECK(line_with(reader.screen(), "000003  bob") > line_with(reader.screen(), "000004  bob"));
  reader.go_to("000003  bob");
  CHECK(reader.marked().starts_with("2 hosts    2 "));
  CHECK(has(reader.screen(), "000003: gpu1: 0 of 4 free; waits on gpu1, gpu2"));
}

TEST_CASE("what is wrong stands at the top, and what was seen before stays") {
  Reader reader;
  auto host = std::make_shared<Host>(*reader.sight.hosts.front());
  host->error = "the driver does not answer\x1b[2J";
  reader.sight.hosts = {host};
  CHECK(text_of(reader.screen().rows[1]) == "the driver does not answer\\x1b[2J");
  CHECK(has(reader.screen(), "leased bob"));
  host->error.clear();
  host->seen_s = kNoon - 12;
  CHECK(text_of(reader.screen().rows[1]) == "no news for 12 s: the machine does not answer");
}

TEST_CASE("the hours stand behind the queue, fold, and copy a command for their GPU alone") {
  TopSight sight = busy();
  CHECK_FALSE(has(shown(sight, {}), "HOURS"));
  sight.hours = [](const Style& style, bool) {
    return std::vector<TopHours>{{"", {{"1 of 4 GPUs is free"}}}, {"2", {{std::string(style.width, '=')}}}};
  };
  TopView view;
  const TopScreen screen = shown(sight, view, {80, 40});
  const std::size_t title = line_with(screen, "HOURS");
  CHECK(title > line_with(screen, "QUEUE"));
  CHECK(text_of(screen.rows[title + 2]) == std::string(80, '='));
  CHECK(has(screen, "1 of 4 GPUs is free"));
  view.at = {TopSection::hours, "gpu1", "2"};
  CHECK(press(view, {KeyName::character, U'c'}, shown(sight, view, {80, 40}), sight).words.front() ==
        "berth run --devices 2 -- COMMAND");
  view.at.name = "#1";
  CHECK(press(view, {KeyName::character, U'c'}, shown(sight, view, {80, 40}), sight).kind ==
        TopDeed::Kind::nothing);
  press(view, {KeyName::character, U'6'}, screen, sight);
  CHECK_FALSE(has(shown(sight, view), "1 of 4 GPUs is free"));
}

TEST_CASE("graphs hide nobody who has a GPU or waits, unless the reader asks for them") {
  Reader reader;
  const auto graphs = [&] { return has(reader.screen(), "Load of 4 GPUs"); };
  for (const std::string gpu : {"0", "1", "2", "3"})
    reader.sight.trends[{"gpu1", test::uuid_of(static_cast<unsigned>(gpu[0] - '0'))}].push_back(
        {.from_s = kNoon, .until_s = kNoon + 1, .load = 50, .memory = 50});
  REQUIRE(graphs());
  // Two lines of a table for each section, with one for each GPU, lease and request.
  const std::size_t people = 2 + 4 + 2 + 2 + 2 + 1;
  const std::size_t head = 1;
  const std::size_t keys = 2;
  const std::size_t graph = 6;
  reader.size.lines = head + people + graph + keys;
  REQUIRE(reader.size.lines >= 20);
  CHECK(graphs());
  auto report = std::make_shared<HostReport>(*reader.sight.hosts.front()->report);
  report->waiters.push_back(report->waiters.front());
  reader.sight.hosts.front() =
      std::make_shared<Host>(Host{.name = "gpu1", .seen_s = kNoon, .report = std::move(report)});
  CHECK_FALSE(graphs());
  CHECK(has(reader.screen(), "0 of 4 free"));
  reader.press(U't');
  CHECK(has(reader.screen(), "2 min ago"));
  for (int i = 0; i < 4; ++i) reader.press(U't');
  CHECK_FALSE(graphs());
}

}  // namespace
}  // namespace berth::view::top_test
