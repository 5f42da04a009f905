#include "berth/request/request.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <map>

#include "berth/verdict/test/machine.h"
#include "property.h"

namespace berth::expression_test {
namespace {

using test::kGiB;

/// GPU 3 of some machine: 12 GiB free for a lease of 40, warm and half busy.
Device device() {
  Device device = test::gpu(3);
  device.memory.used_bytes = 28 * kGiB;
  device.utilization_percent = 50;
  device.temperature_c = 61;
  device.power_mw = 249'500;
  device.sm_clock_mhz = 1410;
  device.processes->push_back(test::process(1, kGiB));
  device.processes->push_back(test::process(2, kGiB, ProcessKind::graphics));
  return device;
}

std::optional<Unmet> unmet(std::string_view text, const Device& of = device(),
                           Reading<std::uint64_t> free = 12 * kGiB) {
  const Result<Expression> expression = Expression::parse(text);
  REQUIRE_MESSAGE(expression, text);
  return expression->unmet_by(DeviceFacts{of, free});
}

TEST_CASE("a comparison holds when the device has what it asks") {
  for (const std::string text : {"name~a100",
                                 "name ~ A100",
                                 "NAME~\"A100-SXM4\"",
                                 "name!~H100",
                                 "name='NVIDIA A100-SXM4-40GB'",
                                 "name!=A100",
                                 "uuid~GPU-00000003",
                                 "index=3",
                                 "id==3",
                                 "pci~03:00",
                                 "total>=40G",
                                 "total=40GiB",
                                 "total<43GB",
                                 "free>=12G",
                                 "free>=12 GiB",
                                 "free>11.5G",
                                 "free<=12288MiB",
                                 "free>=30%",
                                 "free<31%",
                                 "used=28G",
                                 "used>=70%",
                                 "util=50",
                                 "util<=50%",
                                 "util>=50 %",
                                 "mem_util=0",
                                 "temp<62C",
                                 "temp>60",
                                 "power<250",
                                 "power>249W",
                                 "power>=249500mW",
                                 "power<0.25kW",
                                 "power_limit=400",
                                 "sm_clock=1410MHz",
                                 "clock>1.4GHz",
                                 "processes=1",
                                 "cc>=8.0",
                                 "cc=8",
                                 "capability<8.6",
                                 "mig=false",
                                 "mig!=true",
                                 "not mig",
                                 "temperature<62",
                                 "utilisation<51",
                                 "memory_free>11G"}) {
    CHECK_MESSAGE(!unmet(text), text);
  }
}

TEST_CASE("a comparison that does not hold tells itself and what was found") {
  struct Row {
    std::string text;
    const char* condition;
    const char* actual;
  };
  for (const Row& row : {
           Row{"name~H100", "name ~ H100", "NVIDIA A100-SXM4-40GB"},
           Row{"name~\"RTX 3090\"", "name ~ \"RTX 3090\"", "NVIDIA A100-SXM4-40GB"},
           Row{"free>=20G", "free >= 20G", "12 GiB"},
           Row{"free>=50%", "free >= 50%", "30 %"},
           Row{"util<=5", "util <= 5", "50 %"},
           Row{"temp<60", "temp < 60", "61 C"},
           Row{"power<100W", "power < 100W", "250 W"},
           Row{"cc>=9.0", "cc >= 9.0", "8.0"},
           Row{"mig", "mig = true", "false"},
           Row{"processes=0", "processes = 0", "1"},
           Row{"index<3", "index < 3", "3"},
           Row{"fan<50", "fan < 50", "not available"},
           Row{"util=50 and temp<60 and util<5", "temp < 60", "61 C"},
           Row{"util<=5 or temp<60", "util <= 5 or temp < 60", "util 50 %, temp 61 C"},
           Row{"util=50 and (util<=5 or fan<9)", "util <= 5 or fan < 9", "util 50 %, fan not available"},
           Row{"not util>5", "not util > 5", "50 %"},
           Row{"not (util>5 and temp>5)", "not (util > 5 and temp > 5)", "util 50 %, temp 61 C"},
       }) {
    const std::optional<Unmet> found = unmet(row.text);
    REQUIRE_MESSAGE(found, row.text);
    CHECK(found->condition == row.condition);
    CHECK(found->actual == row.actual);
  }
}

TEST_CASE("and binds closer than or, and not closer than both") {
  CHECK(!unmet("index=3 or index=1 and index=2"));
  CHECK(unmet("(index=3 or index=1) and index=2"));
  CHECK(unmet("not index=3 or index=2"));
  CHECK(!unmet("not (index=3 and index=2)"));
  CHECK(!unmet("index=3 && !(index=2) || index=1"));
  CHECK(!unmet("index=1 | index=3 & !index=2"));
  CHECK(!unmet("INDEX=3 AND NOT index=2"));
}

TEST_CASE("an absent reading fails its comparison and the opposite of it, but not what stands beside it") {
  Device silent = device();
  silent.utilization_percent.reset();
  CHECK(unmet("util<5", silent)->actual == "not available");
  CHECK(unmet("util>=5", silent));
  CHECK(unmet("util!=5", silent));
  CHECK(unmet("not util<5", silent)->actual == "not available");
  CHECK(unmet("not (util<5 and temp>0)", silent));
  CHECK(!unmet("not (util<5 and temp<0)", silent));
  CHECK(!unmet("util<5 or temp>0", silent));
  CHECK(unmet("free>=1G", silent, std::nullopt)->actual == "not available");
  CHECK(unmet("free>=0", silent, std::nullopt));
}

TEST_CASE("a wrong expression is refused with its column and what is expected there") {
  const std::map<std::string, std::string> rows{
      {"fre>=20G",
       "expression, column 1: \"fre\" is not a field; did you mean \"free\"?\n"
       "  fre>=20G\n"
       "  ^^^"},
      {"name~A100 and memry_free>=20G",
       "expression, column 15: \"memry_free\" is not a field; did you mean \"memory_free\"?\n"
       "  name~A100 and memry_free>=20G\n"
       "                ^^^^^^^^^^"},
      {"colour=red",
       "expression, column 1: \"colour\" is not a field; the fields are vendor, index, uuid, name, pci, cc, "
       "total, "
       "used, util, mem_util, temp, power, power_limit, sm_clock, mem_clock, fan, free, processes, mig, "
       "host, label\n"
       "  colour=red\n"
       "  ^^^^^^"},
      {"free>=20",
       "expression, column 7: \"20\" is not an amount of memory with its unit, like 20G or 512MiB, or a "
       "share of the "
       "total, like 50%\n"
       "  free>=20\n"
       "        ^^"},
      {"util<=5C",
       "expression, column 7: \"5C\" is not a percentage, like 5 or 5%\n"
       "  util<=5C\n"
       "        ^^"},
      {"free>=",
       "expression, column 7: expected an amount of memory with its unit, like 20G or 512MiB, or a share of "
       "the total, "
       "like 50% after \"free >=\"\n"
       "  free>=\n"
       "        ^"},
      {"name~ and free>=1G",
       "expression, column 7: expected a text after \"name ~\"\n"
       "  name~ and free>=1G\n"
       "        ^^^"},
      {"name~RTX 3090",
       "expression, column 10: expected \"and\", \"or\" or the end; a value of several words needs quotes\n"
       "  name~RTX 3090\n"
       "           ^^^^"},
      {"util<5 temp<3",
       "expression, column 8: expected \"and\", \"or\" or the end\n"
       "  util<5 temp<3\n"
       "         ^^^^"},
      {"(util<5",
       "expression, column 1: there is no \")\" to this \"(\"\n"
       "  (util<5\n"
       "  ^"},
      {"util<5)",
       "expression, column 7: there is no \"(\" to this \")\"\n"
       "  util<5)\n"
       "        ^"},
      {"name<A",
       "expression, column 5: \"name\" is a text: expected ~, !~, = or !=\n"
       "  name<A\n"
       "      ^"},
      {"util~5",
       "expression, column 5: \"util\" is a number: expected =, !=, <, <=, > or >=\n"
       "  util~5\n"
       "      ^"},
      {"mig>1",
       "expression, column 4: \"mig\" is true or false: expected = or !=\n"
       "  mig>1\n"
       "     ^"},
      {"util",
       "expression, column 5: expected =, !=, <, <=, > or >= after \"util\"\n"
       "  util\n"
       "      ^"},
      {"name~\"A100",
       "expression, column 6: this quote is not closed\n"
       "  name~\"A100\n"
       "       ^^^^^"},
      {"name~é or naem~x",
       "expression, column 11: \"naem\" is not a field; did you mean \"name\"?\n"
       "  name~é or naem~x\n"
       "            ^^^^"},
      {"cc>=86",
       "expression, column 5: \"86\" is not a compute capability, like 8.0\n"
       "  cc>=86\n"
       "      ^^"},
      {"total>50%",
       "expression, column 7: \"50%\" is not an amount of memory with its unit, like 20G or 512MiB, or a "
       "share of the "
       "total, like 50%\n"
       "  total>50%\n"
       "        ^^^"},
  };
  for (const auto& [text, message] : rows) {
    const Result<Expression> parsed = Expression::parse(text);
    REQUIRE_MESSAGE(!parsed, text);
    CHECK(parsed.error().code == ErrorCode::usage);
    CHECK(parsed.error().message == message);
  }
  for (const std::string text :
       {"", "  ", "and", "()", "not", "5<util", "util<5 and", "util<-5", "util<5 or or", "\"x\"", "!",
        "util<nan", "util<inf", "free>=99999999999999T", "name~\n"}) {
    CHECK_MESSAGE(!Expression::parse(text), text);
  }
  CHECK(!Expression::parse(std::string(5000, '(')));
  CHECK(!Expression::parse(std::string(5000, '!') + "mig"));
}

TEST_CASE("its text is written in one way and means the same") {
  const std::map<std::string, std::string> rows{
      {"name~A100&&free>=20G", "name ~ A100 and free >= 20G"},
      {"((util<5))", "util < 5"},
      {"util<5|(temp<80&power<9)", "util < 5 or temp < 80 and power < 9"},
      {"(util<5|temp<80)&power<9", "(util < 5 or temp < 80) and power < 9"},
      {"!mig", "not mig = true"},
      {"memory_free>=20 GiB", "free >= 20GiB"},
      {"name~'a \"b\" \\\\'", "name ~ \"a \\\"b\\\" \\\\\""},
      {"name~\"and\"", "name ~ \"and\""},
      {"name=\"\"", "name = \"\""},
      {"not not mig", "not not mig = true"},
  };
  for (const auto& [text, uniform] : rows) {
    CHECK(test::condition(text).text() == uniform);
    CHECK(test::condition(uniform).text() == uniform);
  }
}

TEST_CASE("the text of what is nested as deeply as may be is read again") {
  const std::string deepest = std::string(100, '!') + "name~e";
  const auto expression = Expression::parse(deepest);
  REQUIRE(expression);
  const auto again = Expression::parse(expression->text());
  REQUIRE(again);
  CHECK(again->text() == expression->text());
  CHECK(!Expression::parse("!" + deepest));
}

TEST_CASE("it knows which readings it needs") {
  CHECK(test::condition("util<5 or temp<80").readings() ==
        (ReadingKind::utilization | ReadingKind::temperature));
  CHECK(test::condition("free>=1G").readings() == (ReadingKind::memory | ReadingKind::processes));
  CHECK(test::condition("index=1").readings() == ReadingSet());
  CHECK(test::condition("label=nvlink or host~gpu").readings() == ReadingKind::host);
  CHECK(test::condition("label=nvlink").readings() == ReadingSet());
  const std::vector<Expression> parts =
      test::condition("util<5 and (temp<80 and power<9) and (fan<3 or mig)").conjuncts();
  REQUIRE(parts.size() == 4);
  CHECK(parts[1].text() == "temp < 80");
  CHECK(parts[3].text() == "fan < 3 or mig = true");
  CHECK(Expression().conjuncts().empty());
  CHECK(!Expression().unmet_by(DeviceFacts{device(), std::nullopt}));
}

TEST_CASE("what can never hold on a device is known, whatever it reads now") {
  const Device card = device();
  for (const std::string text :
       {"name~H100", "index=2", "total>=80G", "free>=41G", "used>41G", "cc>=9.0", "mig",
        "free>=20G and free>=100G", "name~H100 or free>=100G", "not (free<100G)", "util<0", "free>101%"}) {
    CHECK_MESSAGE(test::condition(text).never_met_by(card), text);
  }
  for (const std::string text : {"name~A100", "free>=39G", "util<5", "temp<10", "free>=100G or util<5",
                                 "not util<5", "fan>100", "power>999", "processes=0", "free>90%"}) {
    CHECK_MESSAGE(!test::condition(text).never_met_by(card), text);
  }
  CHECK(test::condition("free>=100G").never_met_by(card)->actual == "39.5 GiB at most");
  Facts split = test::machine(1);
  test::split(split.snapshot, 0, 1);
  CHECK(test::condition("util<5").never_met_by(split.snapshot.devices[1])->actual == "not available");
  CHECK(test::condition("not util<5").never_met_by(split.snapshot.devices[1]));
  CHECK(!test::condition("free>1G").never_met_by(split.snapshot.devices[1]));
}

TEST_CASE("a threshold is loosened in round numbers just so far that the device meets it") {
  const Device card = device();
  const std::map<std::string, std::string> rows{
      {"free>=20G", "free >= 12G"},      {"free>50%", "free >= 30%"},   {"util<5", "util <= 50"},
      {"temp<=60", "temp <= 61"},        {"power<100", "power <= 250"}, {"cc>=9.0", "cc >= 8.0"},
      {"processes<1", "processes <= 1"}, {"used<1G", "used <= 28G"}};
  for (const auto& [strict, loose] : rows) {
    const std::optional<Expression> loosened =
        test::condition(strict).loosened_for(DeviceFacts{card, 12 * kGiB});
    REQUIRE_MESSAGE(loosened, strict);
    CHECK(loosened->text() == loose);
  }
  for (const std::string text :
       {"name~H100", "fan<5", "util=3", "not util<5", "util<5 or temp<5", "mem_util>5"}) {
    CHECK_MESSAGE(!test::condition(text).loosened_for(DeviceFacts{card, 12 * kGiB}), text);
  }
  CHECK(test::condition("free>=20G").loosened_for(DeviceFacts{card, 3 * kGiB + 1})->text() ==
        "free >= 3072M");
  CHECK(!test::condition("free>=20G").loosened_for(DeviceFacts{card, 0}));
}

rc::Gen<std::string> random_expression(int depth) {
  const auto leaf = rc::gen::element<std::string>("util<5", "free>=20G", "name~\"A 100\"", "mig", "fan>=50%",
                                                  "cc>=8.0", "temp!=61", "index=3", "power<100W",
                                                  "name!~'\"'", "used<10%", "label!=nvlink");
  if (depth == 0) return leaf;
  const auto inner = random_expression(depth - 1);
  return rc::gen::oneOf(
      leaf,
      rc::gen::map(rc::gen::pair(inner, inner),
                   [](const auto& p) { return "(" + p.first + ") and (" + p.second + ")"; }),
      rc::gen::map(rc::gen::pair(inner, inner),
                   [](const auto& p) { return "(" + p.first + ") or (" + p.second + ")"; }),
      rc::gen::map(inner, [](const std::string& text) { return "not (" + text + ")"; }));
}

TEST_CASE("expressions keep their promises on random input") {
  holds_for_any("the text of an expression parses to itself and judges alike", [] {
    const std::string text = *random_expression(3);
    const Expression first = test::condition(text);
    const Expression second = test::condition(first.text());
    RC_ASSERT(first.text() == second.text());
    const Device card = device();
    const DeviceFacts facts{card, 12 * kGiB};
    RC_ASSERT(first.unmet_by(facts).has_value() == second.unmet_by(facts).has_value());
  });
  holds_for_any("what can never hold does not hold now", [] {
    const Expression expression = test::condition(*random_expression(3));
    const Device card = device();
    if (expression.never_met_by(card)) RC_ASSERT(expression.unmet_by(DeviceFacts{card, 12 * kGiB}));
  });
  holds_for_any("an expression and its opposite never both hold", [] {
    const std::string text = *random_expression(2);
    const Device card = device();
    const DeviceFacts facts{card, 12 * kGiB};
    const bool holds = !test::condition(text).unmet_by(facts);
    const bool opposite = !test::condition("not (" + text + ")").unmet_by(facts);
    RC_ASSERT(!(holds && opposite));
  });
  CHECK(rc::check("a quoted text is one value that means itself", [](const std::string& text) {
    Device named = device();
    named.name = text;
    const Result<Expression> expression = Expression::parse("name=" + Expression::quoted(text));
    RC_ASSERT(expression);
    RC_ASSERT((text.empty() || !expression->unmet_by(DeviceFacts{named, std::nullopt})));
  }));
  holds_for_any("any bytes parse or are refused with a column", [] {
    const auto text = *rc::gen::container<std::string>(rc::gen::element('(', ')', '"', '\'', '\\', '!', '~',
                                                                        '<', '=', '>', '&', '|', ' ', '5',
                                                                        'G', '%', 'm', 'i', 'g', '\xc3'));
    const Result<Expression> parsed = Expression::parse(text);
    RC_ASSERT(parsed || parsed.error().message.starts_with("expression, column "));
  });
}

TEST_CASE("of several labels one is enough, and what is not to be is to be none of them") {
  const Device card = device();
  const auto unmet = [&](const HostFacts& host, const std::string& text) {
    return test::condition(text).unmet_by(DeviceFacts{card, std::nullopt, &host});
  };
  const HostFacts host{"gpu1.lab", {"nvlink", "room:b12"}};
  for (const char* text :
       {"label=nvlink", "label=ROOM:B12", "labels~b12", "label!=scratch", "not label=scratch", "label!~c13",
        "host~gpu1", "hostname=gpu1.lab", "label=nvlink and label=room:b12 and host!=gpu2"})
    CHECK_MESSAGE(!unmet(host, text), text);
  for (const char* text : {"label=nv", "label!=nvlink", "not label~room", "host=gpu1", "host!~gpu"})
    CHECK_MESSAGE(unmet(host, text), text);
  CHECK(unmet(host, "label=scratch")->actual == "nvlink, room:b12");
  const HostFacts bare{"gpu2", {}};
  CHECK(unmet(bare, "label=nvlink")->actual == "none");
  CHECK(!unmet(bare, "label!=nvlink"));
}

TEST_CASE("of a host that does not tell its labels neither a condition on them nor its opposite holds") {
  const Device card = device();
  for (const char* text : {"label=nvlink", "label!=nvlink", "not label=nvlink", "host~gpu", "host!~gpu"}) {
    const auto unmet = test::condition(text).unmet_by(DeviceFacts{card, std::nullopt});
    REQUIRE_MESSAGE(unmet, text);
    CHECK(unmet->actual == "not known of this host");
    CHECK_MESSAGE(test::condition(text).never_met_by(card), text);
  }
}

TEST_CASE("what a host is not, it never will be") {
  const Device card = device();
  const HostFacts host{"gpu1", {"nvlink"}};
  CHECK(test::condition("label=scratch").never_met_by(card, &host));
  CHECK(!test::condition("label=nvlink and free>=1G").never_met_by(card, &host));
}

TEST_CASE("a label is a word that needs no quotes") {
  for (const char* label : {"nvlink", "room:b12", "10.0/24", "a+b@c_d-e"})
    CHECK_MESSAGE(check_label(label), label);
  for (const std::string& label : {std::string(), std::string("two words"), std::string("a=b"),
                                   std::string("a\x1b[2J"), std::string(65, 'x')})
    CHECK_MESSAGE(!check_label(label), label);
}

}  // namespace
}  // namespace berth::expression_test
