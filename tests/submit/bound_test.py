"""What jobs leave on the disk is bounded: their output, and how long they are kept."""

import os
import pathlib
import time

from jobs import eventually
from schemas import checked
from storm import processes
from submitted import job, kill, log, spool, submit, told, wait_for

MIB = 1 << 20


def on_disk(path) -> int:
    return os.stat(path).st_blocks * 512


def test_an_output_keeps_its_begin_and_its_end_within_the_bound_and_says_what_is_missing(machine):
    script = (
        "echo begin; head -c 9M /dev/zero | tr '\\0' x; echo; echo end; test -e {0}/go || exec sleep 1000"
    )
    number = submit(machine, "--output-limit", "1M", "--", "sh", "-c", script.format(machine.directory))
    path = job(machine, number)["output"]
    eventually(
        lambda: os.path.exists(path) and os.stat(path).st_size > 9 * MIB and on_disk(path) <= MIB + 4096
    )
    text = log(machine, number)
    assert text.startswith("begin\nxxx") and text.endswith("x\nend\n")
    (mark,) = (line for line in text.splitlines() if line.startswith("[berth: "))
    assert mark.endswith("bytes of the output are cut out here, so that it takes 1 MiB at most]")
    assert "\0" not in text and len(text) <= MIB
    # All that was printed is there, or counted: the mark itself is of ours.
    size = len("begin\n") + 9 * MIB + len("\nend\n")
    cut = int(mark.split()[1])
    assert size == len(text) - len("\n" + mark + "\n") + cut
    # While the job runs, this is noted each time that it has doubled.
    eventually(
        lambda: cut // 2
        < checked(machine.berth("jobs", "--json"), "jobs")["jobs"][0]["output_cut_bytes"]
        <= cut
    )
    assert (
        f"of its output were cut out of the middle; `berth log {number}` has the rest"
        in machine.berth("jobs").out
    )


def test_an_output_goes_on_to_be_bounded_while_it_grows_and_when_it_is_run_again(machine):
    script = (
        "for i in 1 2 3 4 5 6; do head -c 3M /dev/zero | tr '\\0' x; echo part $i; sleep 0.3; done; exit 1"
    )
    number = submit(machine, "--output-limit", "1M", "--retries", "1", "--", "sh", "-c", script)
    assert machine.berth("wait", number).status == 1
    found = job(machine, number)
    assert found["starts"] == 2
    assert on_disk(found["output"]) <= MIB + 4096
    text = log(machine, number)
    assert text.endswith("part 6\n")
    assert text.count("[berth: ") == 1
    assert found["output_cut_bytes"] == int(text.split("[berth: ")[1].split()[0])


def test_what_is_left_of_a_job_is_bounded_after_its_command_has_ended(machine):
    # The shell ends, and a child of it prints on.
    script = "(trap '' HUP; while test ! -e {0}/enough; do head -c 1M /dev/zero; sleep 0.05; done) & exit 0"
    number = submit(machine, "--output-limit", "1M", "--", "sh", "-c", script.format(machine.directory))
    path = wait_for(machine, number, "ended")["output"]
    eventually(lambda: os.stat(path).st_size > 20 * MIB)
    eventually(lambda: on_disk(path) < 8 * MIB)
    (machine.directory / "enough").touch()


def test_the_site_says_how_much_an_output_may_take(machine):
    (machine.directory / "site.toml").write_text('job_output = "1M"\n')
    number = submit(machine, "--output-limit", "1G", "--", "sh", "-c", "head -c 4M /dev/zero")
    assert machine.berth("wait", number).status == 0
    assert on_disk(job(machine, number)["output"]) <= MIB + 4096
    (machine.directory / "site.toml").write_text('job_output = "1K"\n')
    assert "job_output must be a size from 1 MiB up" in machine.berth("pick").err
    assert machine.berth("submit", "--output-limit", "1K", "--", "true").status == 2


DAY = 24 * 3600


def grow_old(machine, number: str, seconds: int, boot: str = "another") -> None:
    """As if all that has happened to the job had happened so long ago, before a reboot."""
    new = {"at": int(time.time()) - seconds, "boot": boot}
    for state in (spool(machine) / number).glob("*state"):
        pairs = (line.partition("=") for line in state.read_text().splitlines())
        state.write_text("".join(f"{key}{sign}{new.get(key, value)}\n" for key, sign, value in pairs))
    (spool(machine) / "swept").unlink(missing_ok=True)


def test_jobs_that_are_over_for_a_month_are_forgotten_and_no_others(machine):
    # They are forgotten in this order: one that must stay would be gone first.
    young, other, undated, old, array = (
        submit(machine, *words, "--", "true") for words in ([], [], [], [], ["--array", "1-3"])
    )
    assert machine.berth("wait", young, other, undated, old, array).status == 0
    runs = submit(machine, "--", "sleep", "1000")
    wait_for(machine, runs, "running")
    eventually(lambda: not processes(machine)["runner"])
    grow_old(machine, old, 31 * DAY)
    grow_old(machine, array, 31 * DAY)
    grow_old(machine, young, 29 * DAY)
    # Its machine had started in 1970, and learnt the time later: nobody knows how old it is.
    grow_old(machine, undated, int(time.time()) - 1000)
    # Of this boot, its own clock counts: that of the wall was set.
    boot = pathlib.Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    for number in (other, runs):
        grow_old(machine, number, 31 * DAY, boot)
    last = submit(machine, "--", "true")
    eventually(lambda: [found["id"] for found in told(machine)] == [young, other, undated, runs, last])


def test_a_job_that_another_is_to_come_after_is_kept_and_the_site_says_for_how_long(machine):
    (machine.directory / "site.toml").write_text('keep_jobs = "2d"\n')
    first, other = submit(machine, "--", "true"), submit(machine, "--", "true")
    assert machine.berth("wait", first, other).status == 0
    later = submit(machine, "--at", "1h", "--after-ok", first, "--", "true")
    eventually(lambda: processes(machine)["runner"])
    kill(machine, "runner")
    for number in (first, other):
        grow_old(machine, number, 3 * DAY)
    last = submit(machine, "--", "true")
    eventually(lambda: [found["id"] for found in told(machine)] == [first, later, last])
