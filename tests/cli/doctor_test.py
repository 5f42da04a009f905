import pathlib

import pytest
from jobs import holder
from schemas import checked


@pytest.fixture
def site(machine):
    return machine.directory / "site.toml"


def level_of(machine, check, **options):
    """Of this check, the worst level."""
    findings = checked(machine.berth("doctor", "--json", **options), "doctor")["findings"]
    levels = [finding["level"] for finding in findings if finding["check"].startswith(check)]
    return max(levels, key=["pass", "warn", "fail"].index) if levels else None


def test_a_sound_machine_passes(machine):
    answer = machine.berth("doctor")
    assert answer.status == 0
    assert answer.err == ""
    assert "FAIL" not in answer.out
    assert answer.out.startswith("PASS  driver: 550.163.01 answers by nvml, with 8 devices\n")


def test_what_is_wrong_fails_with_a_remedy(make_machine):
    machine = make_machine(
        '[[device]]\nmodel = "T4"\nlost = true\n[[device]]\nmodel = "A6000"\npersistence = false\n'
    )
    answer = machine.berth("doctor")
    assert answer.status == 1
    assert "FAIL  GPU 0: lost" in answer.out
    assert "      -> " in answer.out
    assert level_of(machine, "persistence") == "warn"
    assert level_of(machine, "numbering") in ("warn", "pass")


def test_a_driver_that_does_not_start_fails_and_the_rest_is_still_looked_at(make_machine):
    machine = make_machine('init_result = 18\n[[device]]\nmodel = "T4"\n')
    assert machine.berth("doctor").status == 1
    assert level_of(machine, "driver") == "fail"
    assert level_of(machine, "site file") == "pass"


@pytest.mark.parametrize("error, remedy", [(999, "modprobe nvidia_uvm"), (802, "nvidia-fabricmanager"),
                                           (100, "--gpus all"), (803, "different versions"), (7, "dmesg")])  # fmt: skip
def test_cuda_that_does_not_start_fails_with_what_helps(make_machine, error, remedy):
    machine = make_machine(
        f'[[device]]\nmodel = "A100"\ncount = 2\n[[fault]]\ncall = "cuInit"\nresult = {error}\n'
    )
    said = " ".join(machine.berth("doctor").out.split())
    assert f"FAIL CUDA: CUDA does not start: error {error} (" in said
    assert remedy in said.partition("CUDA does not start")[2].partition("-> ")[2]
    assert level_of(machine, "driver") == "pass"


def test_only_a_gpu_that_nobody_has_is_tried_and_one_that_makes_no_context_fails(make_machine):
    machine = make_machine(
        '[[device]]\nmodel = "A100"\ncount = 4\n[[fault]]\ncall = "cuDevicePrimaryCtxRetain"\ndevice = 2\nresult = 214\n'
    )
    job = holder(machine, "--devices", "0,1")
    said = " ".join(machine.berth("doctor").out.split())
    assert "FAIL GPU 2: CUDA makes no context on it: error 214 (" in said
    assert "tried on 2 GPUs that nobody has" in said
    assert job.may_end().ends() == 0
    assert level_of(machine, "GPU 2", env={"CUDA_VISIBLE_DEVICES": "0"}) == "fail"
    assert machine.berth("list", "--json").json["leases"] == []


@pytest.mark.parametrize(
    "trouble, words", [("crash = true", "signal 11"), ("hang = true", "no answer within")]
)
def test_cuda_that_crashes_or_hangs_ends_no_doctor(make_machine, trouble, words):
    machine = make_machine(f'[[device]]\nmodel = "A100"\n[[fault]]\ncall = "cuInit"\n{trouble}\n')
    assert words in machine.berth("doctor", env={"BERTH_DRIVER_DEADLINE_MS": "500"}).out


def test_a_machine_without_the_cuda_library_is_warned_of(make_machine):
    machine = make_machine("2xA100")
    bare = machine.directory / "bare"
    bare.mkdir()
    folder = next(path for path in machine.env["LD_LIBRARY_PATH"].split(":") if "sim" in path)
    for library in pathlib.Path(folder).glob("libnvidia-ml.so*"):
        (bare / library.name).symlink_to(library)
    (bare / "libcuda.so.1").write_text("no library")
    assert level_of(machine, "CUDA", env={"LD_LIBRARY_PATH": bare}) == "warn"


def test_a_mask_that_is_cut_off_is_told(machine):
    assert level_of(machine, "mask", env={"CUDA_VISIBLE_DEVICES": "0,99"}) == "warn"
    assert level_of(machine, "mask", env={"CUDA_VISIBLE_DEVICES": "0"}) == "pass"


def test_the_site_file_in_force_is_shown(machine, site):
    site.write_text(
        'labels = ["nvlink"]\nhost_name = "gpu1"\nignored_users = ["gdm"]\n[[excluded]]\ndevice = 3\nreason = "on loan"\n'
    )
    out = machine.berth("doctor").out
    assert f"PASS  site file: {site}: " in out.replace("\n      ", " ")
    assert "3 is excluded (on loan)" in out
    assert "this machine is called gpu1; its labels: nvlink" in " ".join(out.split())


@pytest.mark.parametrize("command", [["pick"], ["why"], ["run", "--", "true"], ["list"]])
def test_a_broken_site_file_stops_everything_that_judges(machine, site, command):
    site.write_text("hidden_tolerance = 1\n")
    answer = machine.berth(*command)
    assert (answer.status, answer.out) == (1, "-1\n" if command == ["pick"] else "")
    assert answer.err.startswith(f"berth: {site}:1: hidden_tolerance must be a text in quotes")
    assert level_of(machine, "site file") == "fail"


def test_an_excluded_device_is_not_given_and_the_reason_is_told(machine, site):
    site.write_text('[[excluded]]\ndevice = 0\nreason = "on loan"\n')
    assert machine.berth("pick").out == "1\n"
    assert "on loan" in machine.berth("why").out


def test_the_users_file_narrows_and_never_widens(machine, site):
    own = machine.directory / "home/.config/berth.toml"
    own.parent.mkdir()
    own.write_text('[[excluded]]\ndevice = 0\nreason = "too loud"\n')
    assert machine.berth("pick").out == "1\n"
    own.write_text('ignored_users = ["root"]\n')
    answer = machine.berth("pick")
    assert answer.status == 1
    assert answer.err.startswith(f"berth: {own}:1: only /etc/berth.toml may set ignored_users")


def test_an_unreadable_site_file_is_not_skipped(machine, site):
    site.unlink()
    site.mkdir()
    answer = machine.berth("pick")
    assert (answer.status, answer.out) == (1, "-1\n")
    assert str(site) in answer.err


def test_a_gpu_without_a_list_of_processes_has_its_own_word_and_a_site_may_let_leases_decide(make_machine):
    machine = make_machine(
        '[[device]]\nmodel = "T4"\nunsupported = ["processes"]\n[[device]]\nmodel = "T4"\n'
    )
    assert "no process list" in machine.berth("list").out and "outsider" not in machine.berth("list").out
    assert machine.berth("pick", "--devices", "0").out == "-1\n"
    assert level_of(machine, "GPU 0") == "fail"
    uuid = machine.berth("list", "--json").json["devices"][0]["uuid"]
    told = f'trust_leases = ["{uuid}"]'
    assert f"{told} in /etc/berth.toml" in " ".join(machine.berth("doctor").out.split())
    (machine.directory / "site.toml").write_text(f"{told}\n")
    assert machine.berth("pick", "--devices", "0").out == "0\n"
    assert level_of(machine, "GPU 0") == "warn"
    whole = holder(machine, "--devices", "0")
    assert machine.berth("pick", "--devices", "0").out == "-1\n"
    assert whole.may_end().ends() == 0
    share = holder(machine, "--devices", "0", "--memory", "2G")
    assert machine.berth("pick", "--devices", "0", "--memory", "2G").out == "0\n"
    assert share.may_end().ends() == 0
