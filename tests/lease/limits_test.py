"""How many GPUs a user may have at the same time, where the site says so."""

import getpass
import json

import pytest
from jobs import Job, eventually, holder, waiter
from lab import Lab

NEVER, NOT_NOW = 69, 75


@pytest.fixture
def limited(make_lab):
    def make(site: str) -> Lab:
        lab = make_lab("4xH100")
        (lab.directory / "site.toml").write_text(site)
        return lab

    return make


def test_who_has_as_many_as_he_may_waits_until_one_of_them_ends(limited):
    lab = limited("[limits]\ngpus = 2\n")
    first = holder(lab, "-n", "2")
    refused = lab.berth("run", "--no-wait", "--", "true")
    assert refused.status == NOT_NOW
    why = "your limit is 2 GPUs at the same time (limits.gpus in the site file), and you have 2"
    assert why in refused.err
    assert why in lab.berth("pick").err
    assert why in lab.berth("why").out
    # A listing is of the machine, whoever asks.
    assert "over your limit" not in lab.berth("list").out
    third = waiter(lab)
    first.ends()
    assert third.starts() in "0123"
    assert third.ends() == 0


def test_who_waits_for_his_own_limit_keeps_nothing_from_others(limited):
    lab = limited("[limits]\ngpus = 2\n")
    holder(lab, "-n", "2")
    waiting = waiter(lab, "-n", "2")
    eventually(lambda: json.loads(lab.berth("queue", "--json").out)["waiters"][0]["held_back"])
    # Another user, as far as the rules go: without the limit.
    (lab.directory / "other.toml").write_text("")
    other = Job(lab, "-n", "2", env={"BERTH_SITE_FILE": lab.directory / "other.toml"})
    assert other.starts() == "2,3"
    assert other.ends() == 0
    assert not waiting.has_started()


def test_one_at_his_limit_is_passed_also_where_fewer_are_free_than_he_wants(limited):
    lab = limited("[limits]\ngpus = 2\n")
    mine = holder(lab, "-n", "2")
    waiting = waiter(lab, "-n", "2")
    (lab.directory / "other.toml").write_text("")
    others = {"BERTH_SITE_FILE": lab.directory / "other.toml"}
    first = Job(lab, env=others)
    assert first.starts() == "2"
    second = Job(lab, env=others)
    assert second.starts() == "3"
    for job in (first, second, mine):
        job.ends()
    waiting.starts()


def test_who_waits_for_his_own_limit_is_told_no_start(limited):
    lab = limited("[limits]\ngpus = 2\n")
    holder(lab, "-n", "2", "--time", "2h")
    waiting = waiter(lab)
    line = waiting.err.line()
    assert "over your limit" in line
    assert "to start about" not in line


def test_more_than_the_limit_is_never_possible(limited):
    answer = limited("[limits]\ngpus = 2\n").berth("run", "-n", "3", "--", "true")
    assert answer.status == NEVER
    assert (
        "your limit is 2 GPUs at the same time (limits.gpus in the site file), and you have none"
        in answer.err
    )


def test_a_user_has_his_own_limit_before_that_of_a_group_and_that_before_that_of_all(limited):
    me = getpass.getuser()
    lab = limited(f"[limits]\ngpus = 1\n[limits.groups]\n{me} = 2\n")
    assert "limits.groups." + me in lab.berth("run", "-n", "3", "--", "true").err
    (lab.directory / "site.toml").write_text(
        f"[limits]\ngpus = 1\n[limits.groups]\n{me} = 2\n[limits.users]\n{me} = 3\n"
    )
    assert lab.berth("run", "-n", "3", "--", "true").status == 0
    assert "limits.users." + me in lab.berth("run", "-n", "4", "--", "true").err


def test_inside_a_lease_no_limit_counts_again(limited):
    lab = limited("[limits]\ngpus = 2\n")
    answer = lab.berth("run", "-n", "2", "--", lab.program, "run", "-n", "2", "--", "true")
    assert answer.status == 0, answer.err


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[limits]\ngpus = -1\n", "limits.gpus must be a number of GPUs, 0 to 10000"),
        ('[limits]\ngpus = "2"\n', "limits.gpus must be a number of GPUs, 0 to 10000"),
        ("limits = 3\n", "limits is a table: [limits]"),
        ("[limits]\nusers = 3\n", "limits.users is a table of names: [limits.users]"),
        ("[limits]\ncards = 3\n", "unknown key 'cards' in [limits]; allowed: gpus, users, groups"),
    ],
)
def test_a_limit_that_cannot_be_read_is_named_with_its_line(limited, text, words):
    answer = limited(text).berth("run", "--", "true")
    assert answer.status != 0
    assert words in answer.err


def test_the_doctor_names_whom_the_machine_does_not_know(limited):
    lab = limited("[limits.users]\nnobody = 2\nada-who-left = 3\n[limits.groups]\nno-such-group = 1\n")
    text = " ".join(lab.berth("doctor").out.split())
    assert "[limits.users] names ada-who-left, and this machine knows no such user" in text
    assert "[limits.groups] names no-such-group, and this machine knows no such group" in text
    assert "names nobody" not in text


def test_the_doctor_says_the_limits(limited):
    lab = limited("[limits]\ngpus = 2\n[limits.users]\nada = 4\n[limits.groups]\nstudents = 1\n")
    text = " ".join(lab.berth("doctor").out.split())
    assert (
        "a user may have 2 GPUs at the same time; ada may have 4; who is in the group students may have 1"
        in text
    )
