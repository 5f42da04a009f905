#include "berth/verdict/verdict.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <rapidcheck.h>

#include <algorithm>

#include "berth/verdict/test/machine.h"
#include "property.h"

namespace berth::suggestions_test {
namespace {

using namespace test;
using Texts = std::vector<std::string>;

Texts changes(const Request& request, const Ledger& ledger, const Facts& facts) {
  Texts texts;
  for (const Suggestion& suggestion : loosen(request, ledger, facts)) texts.push_back(suggestion.change);
  return texts;
}

/// Four GPUs whose outsiders, which the request allows, leave 9.5, 19.5, 29.5 and 39.5 GiB.
Facts filled_machine() {
  Facts facts = machine(4);
  for (unsigned i = 0; i < 3; ++i)
    add_process(facts.snapshot.devices[i], process(100 + i, (30 - 10 * i) * kGiB));
  return facts;
}

TEST_CASE("what would succeed now is told, one change at a time, the most useful first") {
  struct Row {
    std::string why;
    Texts changes;
    void (*arrange)(Request&, Ledger&, Facts&);
  };
  for (const Row& row : {
           Row{"nothing is wrong", {}, [](Request&, Ledger&, Facts&) {}},
           Row{"memory that three have",
               {"free >= 19G instead of free >= 30G", "1 GPU instead of 3"},
               [](Request& r, Ledger&, Facts& f) {
                 f = filled_machine();
                 r.count = 3;
                 r.allowed_processes = 1;
                 r.conditions = {condition("free>=30G and cc>=8.0")};
               }},
           Row{"a model that is not here",
               {"without name ~ H100"},
               [](Request& r, Ledger&, Facts&) { r.conditions = {condition("name~H100")}; }},
           Row{"too many",
               {"3 GPUs instead of 4"},
               [](Request& r, Ledger& l, Facts&) {
                 r.count = 4;
                 l.tickets = {lease(1, uuid_of(2))};
               }},
           Row{"the wrong devices",
               {"any GPU, instead of only GPU 2"},
               [](Request& r, Ledger& l, Facts&) {
                 r.devices = {"2"};
                 l.tickets = {lease(1, uuid_of(2))};
               }},
           Row{"the right one excluded",
               {"without excluding 3"},
               [](Request& r, Ledger& l, Facts&) {
                 r.exclude = {"3"};
                 for (unsigned i = 0; i < 3; ++i) l.tickets.push_back(lease(1 + i, uuid_of(i)));
               }},
           Row{"company",
               {"on a GPU that one other process also uses"},
               [](Request&, Ledger&, Facts& f) {
                 for (Device& device : f.snapshot.devices) add_process(device, process(9, kGiB));
               }},
           Row{"a large promise",
               {"19 GiB of memory instead of 30 GiB"},
               [](Request& r, Ledger& l, Facts&) {
                 r = shared_request(30 * kGiB);
                 for (unsigned i = 0; i < 4; ++i)
                   l.tickets.push_back(shared_lease(1 + i, uuid_of(i), 20 * kGiB));
               }},
           Row{"everything leased",
               {},
               [](Request&, Ledger& l, Facts&) {
                 for (unsigned i = 0; i < 4; ++i) l.tickets.push_back(lease(1 + i, uuid_of(i)));
               }},
           Row{"two things wrong",
               {},
               [](Request& r, Ledger&, Facts&) {
                 r.conditions = {condition("name~H100"), condition("util>5")};
               }},
       }) {
    Request request;
    Ledger ledger;
    Facts facts = machine(4);
    row.arrange(request, ledger, facts);
    CHECK_MESSAGE(changes(request, ledger, facts) == row.changes, row.why, ": ",
                  fmt::format("{}", fmt::join(changes(request, ledger, facts), " | ")));
  }
}

TEST_CASE("suggestions keep their promises on random machines") {
  holds_for_any("each succeeds, differs from the request, and there are at most three", [] {
    Facts facts = machine(*rc::gen::element(1U, 2U, 4U));
    Ledger ledger;
    std::uint64_t id = 1;
    for (Device& device : facts.snapshot.devices) {
      const int fate = *rc::gen::element(0, 1, 2, 3);
      if (fate == 1) ledger.tickets.push_back(lease(id++, device.uuid));
      if (fate == 2) ledger.tickets.push_back(shared_lease(id++, device.uuid, 10 * kGiB));
      if (fate == 3) add_process(device, process(9, kGiB));
      device.temperature_c = *rc::gen::element(30, 50, 70);
      device.utilization_percent = *rc::gen::element(0U, 3U, 90U);
    }
    Request request = *rc::gen::arbitrary<bool>()
                          ? shared_request(*rc::gen::element<std::uint64_t>(5, 35) * kGiB)
                          : Request{};
    request.count = *rc::gen::element(1U, 2U);
    request.conditions = {
        condition(
            *rc::gen::element<std::string>("temp<40", "util<=1 and free>30%", "free>=35G", "name~H100")),
        condition(*rc::gen::element<std::string>("temp<60 or util<5", "power<9W", "cc>=8.0"))};
    const std::vector<Suggestion> suggestions = loosen(request, ledger, facts);
    RC_ASSERT(suggestions.size() <= 3U);
    for (const Suggestion& suggestion : suggestions) {
      const auto verdicts = judge(suggestion.request, ledger, facts).value();
      const auto free =
          std::count_if(verdicts.begin(), verdicts.end(), [](const Verdict& v) { return v.free(); });
      RC_ASSERT(static_cast<std::size_t>(free) >= suggestion.request.count);
      RC_ASSERT(suggestion.choice.uuids.size() == suggestion.request.count);
    }
  });
}

}  // namespace
}  // namespace berth::suggestions_test
