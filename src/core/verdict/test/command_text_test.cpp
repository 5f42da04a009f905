#include "berth/verdict/verdict.h"

#include <doctest/doctest.h>

#include "berth/verdict/test/machine.h"

namespace berth::command_text_test {
namespace {

TEST_CASE("what a command calls a secret is not told to others") {
  struct Row {
    const char* command;
    const char* told;
  };
  for (const Row& row :
       {Row{"train.py --api-key=abc --lr 3", "train.py --api-key=*** --lr 3"},
        Row{"train.py --api-key abc x", "train.py --api-key *** x"},
        Row{"python -m serve --HF_TOKEN=hf_x=y", "python -m serve --HF_TOKEN=***"},
        Row{"env WANDB_API_KEY=k python a.py", "env WANDB_API_KEY=*** python a.py"},
        Row{"psql --db.password p", "psql --db.password ***"},
        Row{"x --passwords=a,b --client-secret= s y", "x --passwords=*** --client-secret= *** y"},
        Row{"x --token --other", "x --token --other"},
        Row{"curl -H Authorization: Bearer abc http://h", "curl -H Authorization: Bearer *** http://h"},
        Row{"git clone https://me:pw@host/a b", "git clone https://***@host/a b"},
        Row{"x --key: v", "x --key: ***"},
        Row{"curl http://h:80/?api_key=abc", "curl http://h:80/?api_key=***"},
        Row{"bert --tokenizer t --tokenizer=t", "bert --tokenizer t --tokenizer=t"},
        Row{"serve --max-tokens 512 --max_new_tokens=5", "serve --max-tokens 512 --max_new_tokens=5"},
        Row{"train.py  data keys", "train.py  data keys"}, Row{"", ""}}) {
    CHECK(told_command(row.command, CommandVisibility::full) == row.told);
  }
}

TEST_CASE("a site may have the program alone told, or nothing") {
  CHECK(told_command("/usr/bin/python3 a.py --x", CommandVisibility::program) == "python3");
  CHECK(told_command("python3", CommandVisibility::program) == "python3");
  CHECK(told_command("", CommandVisibility::program).empty());
  CHECK(told_command("/usr/bin/python3 a.py", CommandVisibility::none).empty());
}

TEST_CASE("everybody reads his own commands whole, and what the site ignores is known by its program") {
  Facts facts = test::machine(1);
  for (const std::uint32_t uid : {1000U, 1001U}) {
    Process process = test::process(uid, test::kGiB);
    process.uid = uid;
    process.command = "/usr/bin/Xorg --key=1";
    test::add_process(facts.snapshot.devices[0], process);
  }
  Ledger ledger;
  ledger.tickets = {test::lease(1, test::uuid_of(0)), test::lease(2, test::uuid_of(0))};
  ledger.tickets[0].uid = 1000;
  ledger.tickets[1].uid = 1001;
  for (Ticket& ticket : ledger.tickets) ticket.command = "a.py --key=1";
  ledger.ended = {ledger.tickets[1]};
  facts.policy.ignored_programs = {"Xorg"};
  facts.policy.commands = CommandVisibility::none;
  const Facts whole = facts;
  const Ledger all = ledger;
  tell_commands(facts, ledger, 1000);
  const auto& processes = *facts.snapshot.devices[0].processes;
  CHECK(processes[0].command == "/usr/bin/Xorg --key=1");
  CHECK(processes[1].command == "Xorg");
  CHECK(ledger.tickets[0].command == "a.py --key=1");
  CHECK(ledger.tickets[1].command.empty());
  CHECK(ledger.ended[0].command.empty());
  facts = whole;
  ledger = all;
  facts.policy.commands = CommandVisibility::full;
  tell_commands(facts, ledger, std::nullopt);
  CHECK(facts.snapshot.devices[0].processes->at(0).command == "/usr/bin/Xorg --key=***");
  CHECK(ledger.tickets[0].command == "a.py --key=***");
}

}  // namespace
}  // namespace berth::command_text_test
