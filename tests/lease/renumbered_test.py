"""A card disappears: what was said by an index means another card from then on."""

import re

import pytest
from jobs import close_input, holder

FOUR = """
[[device]]
model = "H100"
uuid = "GPU-aaaaaaaa-0000-0000-0000-000000000000"
[[device]]
model = "H100"
uuid = "GPU-bbbbbbbb-0000-0000-0000-000000000000"
[[device]]
model = "H100"
uuid = "GPU-cccccccc-0000-0000-0000-000000000000"
[[device]]
model = "H100"
uuid = "GPU-dddddddd-0000-0000-0000-000000000000"
"""
A, B, C, D = re.findall('"(GPU.*)"', FOUR)
WITHOUT_FIRST = FOUR.split("[[device]]", 2)[2].join(["[[device]]", ""])
FIRST_LOST = FOUR.replace(f'uuid = "{A}"', f'uuid = "{A}"\nlost = true')
OFTEN = {"BERTH_SAMPLE": "20ms"}


@pytest.fixture
def four(make_machine):
    return make_machine(FOUR)


@pytest.mark.parametrize("after", [WITHOUT_FIRST, FIRST_LOST], ids=["gone", "lost"])
def test_the_holder_is_told_once_that_its_mask_means_another_card(four, after):
    job = four.start_berth(
        "run",
        "--devices",
        "1",
        "--",
        "bash",
        "-c",
        "echo $CUDA_VISIBLE_DEVICES; read; true",
        env=OFTEN,
        stdin=-1,
    )
    assert job.stdout.readline() == "1\n"
    four.change(after)
    told = job.stderr.readline()
    assert "the GPUs are numbered otherwise now" in told
    assert "with CUDA_VISIBLE_DEVICES=1, a program of this lease" in told
    assert f"set CUDA_VISIBLE_DEVICES={B}" in told
    close_input(job)
    assert job.wait(90) == 0
    assert "numbered otherwise" not in job.stderr.read()


def test_the_holder_of_uuids_has_nothing_to_be_told(four):
    script = ("--", "bash", "-c", "echo $CUDA_VISIBLE_DEVICES; read; true")
    safe = four.start_berth("run", "--ids", "uuid", "--devices", "1", *script, env=OFTEN, stdin=-1)
    assert safe.stdout.readline() == f"{B}\n"
    by_index = four.start_berth("run", "--devices", "2", *script, env=OFTEN, stdin=-1)
    assert by_index.stdout.readline() == "2\n"
    four.change(WITHOUT_FIRST)
    # Both have the same sampler, and the safe one was there first.
    assert "numbered otherwise" in by_index.stderr.readline()
    for process in (safe, by_index):
        close_input(process)
        assert process.wait(90) == 0
        assert "numbered otherwise" not in process.stderr.read()


@pytest.mark.parametrize("word", ["uuid", "index"])
def test_the_site_says_what_masks_have(four, word):
    (four.directory / "site.toml").write_text(f'mask = "{word}"\n')
    mask = B if word == "uuid" else "1"
    assert four.berth("run", "--devices", "1", "--", "printenv", "CUDA_VISIBLE_DEVICES").out == f"{mask}\n"
    assert four.berth("pick", "--devices", "1").out == f"{mask}\n"
    environment = four.berth("claim", "--json", "--devices", "1").json["environment"]
    assert environment["CUDA_VISIBLE_DEVICES"] == mask
    assert (
        four.berth("run", "--ids", "uuid", "--devices", "2", "--", "printenv", "CUDA_VISIBLE_DEVICES").out
        == f"{C}\n"
    )


def test_a_job_that_was_submitted_for_an_index_gets_the_card_that_it_meant(four):
    first = holder(four, "--devices", "0,2,3")
    for options in (["--devices", "2"], ["--exclude", "1,3"], ["--devices", "3"]):
        assert four.berth("submit", *options, "--", "printenv", "CUDA_VISIBLE_DEVICES").status == 0
    assert four.berth("edit", "3", "--yes", "--devices", "2").status == 0
    four.change(WITHOUT_FIRST)
    first.ends()
    for job in ("1", "2", "3"):
        assert four.berth("wait", job).status == 0
        # By the numbers of now.
        assert four.berth("log", job).out == "1\n"


def test_doctor_names_the_uuid_to_write_in_the_place_of_an_index(four):
    (four.directory / "site.toml").write_text(
        f'trust_leases = [1, "{C}"]\n[[excluded]]\ndevice = 2\nreason = "loud"\n'
        f'[[excluded]]\ndevice = "{D}"\nreason = "loud"\n'
    )
    told = " ".join(four.berth("doctor").out.split())
    assert "[[excluded]] names GPU 2 by its index, which means another GPU once a card has gone" in told
    assert f'check that it is the GPU that you mean, and write device = "{C}" in its place' in told
    assert f'write "{B}" in its place' in told
    assert told.count("by its index") == 2
