"""`berth simulate --from-history`: what really happened, and what other rules would have made of it."""

import pytest
from agent import Agent
from jobs import eventually, holder, waiter
from schemas import checked


@pytest.fixture
def machine(make_machine):
    machine = make_machine("2xH100")
    (machine.directory / "site.toml").write_text("backfill = true\n")
    return machine


@pytest.fixture
def file(machine):
    return machine.directory / "history.db"


@pytest.fixture
def agent(machine, file):
    agent = Agent(machine, "--history", file, "--every", "1s")
    agent.url = f"http://127.0.0.1:{agent.port}"
    return agent


def recorded(agent, leases: int) -> list[dict]:
    """All of them, by when they came, once the agent has seen the last of them for two seconds."""

    def seen():
        document = agent.json("/api/v1/past-leases")
        found = document["leases"]
        lasts = len(found) == leases and (found[-1]["ended_s"] or document["to_s"]) - found[-1]["begun_s"]
        return lasts > 2 and sorted(found, key=lambda lease: lease["id"])

    return eventually(seen)


def ended(agent, leases: int) -> list[dict]:
    def all_ended():
        found = agent.json("/api/v1/past-leases")["leases"]
        over = len(found) == leases and all(lease["ended_s"] is not None for lease in found)
        return over and sorted(found, key=lambda lease: lease["id"])

    return eventually(all_ended)


def test_a_history_replayed_gives_the_grants_that_it_recorded(machine, agent, file):
    first = holder(machine, "-n", "2")
    second = waiter(machine, "-n", "2", "--time", "1h")
    third = waiter(machine, "-n", "1")
    recorded(agent, 1)
    first.ends()
    second.starts()
    recorded(agent, 2)
    second.ends()
    third.starts()
    recorded(agent, 3)
    third.ends()
    leases = ended(agent, 3)
    assert [len(lease["on"]) for lease in leases] == [2, 2, 1]
    assert [lease["request"]["time_s"] for lease in leases] == [None, 3600, None]
    assert all(lease["request"]["whole"] and not lease["request"]["yields"] for lease in leases)

    words = ["simulate", "--from-history", "--json"]
    document = checked(machine.berth(*words, "--url", agent.url), "simulate")
    assert (document["devices"], document["jobs"], document["recorded"]["left_out"]) == (2, 3, [])
    assert document["recorded"]["starts_s"] == [lease["begun_s"] for lease in leases]
    (everybody,) = [each for each in document["waits"] if each["devices"] is None and each["user"] is None]
    assert everybody["recorded"]["p99_s"] >= 2 and everybody["recorded"]["mean_s"] > 0
    # A job starts in the second in which the one before it ended: when the look saw that, or the
    # next began.
    start = leases[0]["begun_s"]
    expected = []
    for lease, after in zip(leases, [*leases[1:], None], strict=True):
        expected.append(start)
        end = min(lease["ended_s"], after["begun_s"]) if after else lease["ended_s"]
        start += max(1, end - lease["begun_s"])
    assert document["policies"][0]["starts_s"] == expected

    # Whoever has fewer GPUs: all are of one user, so nothing changes.
    compared = machine.berth("simulate", "--from-history", "--url", agent.url, "--order", "fair")
    assert (compared.status, compared.err) == (0, "")
    assert "WAS" in compared.out and "was:  as it was recorded." in compared.out and "then:" in compared.out

    assert "an agent has it; ask that one, without --file" in machine.berth(*words, "--file", file).err
    agent.ends()
    assert checked(machine.berth(*words, "--file", file), "simulate")["recorded"] == document["recorded"]


def test_shares_and_jobs_that_yield_are_left_out_and_counted(machine, agent):
    share = holder(machine, "--memory", "10G")
    yielding = holder(machine, "-n", "1", "--yield")
    recorded(agent, 2)
    words = ["simulate", "--from-history", "--url", agent.url]
    nothing = machine.berth(*words)
    assert nothing.status == 1 and "no lease of this time can be replayed" in nothing.err
    yielding.ends()
    whole = holder(machine, "-n", "1")
    recorded(agent, 3)
    left_out = checked(machine.berth(*words, "--json"), "simulate")["recorded"]["left_out"]
    assert [each["leases"] for each in left_out] == [1, 1]
    assert "1 lease left out: they were for a share" in machine.berth(*words).out
    share.ends()
    whole.ends()


def test_which_leases_ran_the_same_is_known_and_not_what_they_ran(machine, agent):
    secret = machine.start_berth("run", "--", "sleep", "1000.25")
    again = machine.start_berth("run", "--", "sleep", "1000.25")
    recorded(agent, 2)
    for job in (secret, again):
        job.terminate()
        job.wait()
    other = holder(machine)
    leases = recorded(agent, 3)
    assert [lease["request"]["command"] for lease in leases] == [0, 0, 1]
    for expect in ("none", "limits", "runs"):
        words = ["simulate", "--from-history", "--json", "--url", agent.url, "--expect", expect]
        document = checked(machine.berth(*words), "simulate")
        assert document["policies"][-1]["expect"] == expect
    other.ends()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "which jobs? Name a file with --jobs FILE, or add --from-history"),
        (["--jobs", "x", "--from-history"], "--jobs and --from-history contradict each other"),
        (["--jobs", "x", "--since", "1d"], "--since, --url and --file are for --from-history; add it"),
        (["--from-history", "--since", "500d"], "since: must be from 1s to 400d"),
        (["--from-history", "--file", "x", "--url", "http://x"], "--file and --url contradict each other"),
        (["--from-history", "--file", "/none"], "reading /none: No such file or directory"),
        (["--from-history", "--url", "http://127.0.0.1:1"], "nobody listens at http://127.0.0.1:1"),
    ],
)
def test_what_is_wrong_is_named(machine, words, said):
    answer = machine.berth("simulate", *words)
    assert answer.status in (1, 2) and answer.out == ""
    assert said in " ".join(answer.err.split())


def test_a_history_in_which_nothing_was_leased_says_so(machine, agent):
    answer = machine.berth("simulate", "--from-history", "--url", agent.url)
    assert answer.status == 1 and "no lease is recorded of this time" in answer.err
