"""nvidia-smi: output forms, messages and exit statuses."""

import re
import xml.etree.ElementTree as xml

import pytest

LAB = (
    '[[device]]\nmodel = "A100"\nutilization = 97\npower_w = 312.34\ntemperature = 61\ncompute_mode = "exclusive_process"\n'
    '[[device.process]]\npid = 41\nghost = true\nused_mib = 30000\nname = "/opt/my envs/python, really"\n'
    '[[device]]\nmodel = "1080Ti"\ndisplay_active = true\npersistence = false\nfan = 23\n'
    '[[device.process]]\npid = 42\nghost = true\nused_mib = 120\nname = "/usr/lib/xorg/Xorg"\ntype = "G"\n'
)


def test_a_query_prints_what_was_asked_for(machine):
    done = machine.write(LAB).smi(
        "--query-gpu=index,gpu_name,memory.total,memory.used,utilization.gpu,power.draw,fan.speed,pstate",
        "--format=csv",
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (
        "index, name, memory.total [MiB], memory.used [MiB], utilization.gpu [%], power.draw [W], fan.speed [%], pstate\n"
        "0, NVIDIA A100-SXM4-40GB, 40960 MiB, 30000 MiB, 97 %, 312.34 W, [N/A], P0\n"
        "1, NVIDIA GeForce GTX 1080 Ti, 11264 MiB, 120 MiB, 0 %, 10.00 W, 23 %, P8\n"
    )


def test_the_query_of_a_fallback_client(machine):
    fields = (
        "index,uuid,pci.bus_id,memory.total,memory.used,memory.free,utilization.gpu,utilization.memory,temperature.gpu,power.draw,"
        "enforced.power.limit,clocks.sm,clocks.mem,pstate,fan.speed,compute_mode,persistence_mode,display_active,"
        "mig.mode.current,driver_version,name"
    )
    rows = (
        machine.write(LAB).smi("--query-gpu=" + fields, "--format=csv,noheader,nounits").stdout.splitlines()
    )
    first, second = (row.split(", ") for row in rows)
    assert first[3:11] == ["40960", "30000", str(40960 - 424 - 30000), "97", "0", "61", "312.34", "400.00"]
    assert first[14:] == [
        "[N/A]",
        "Exclusive_Process",
        "Enabled",
        "Disabled",
        "Disabled",
        "550.163.01",
        "NVIDIA A100-SXM4-40GB",
    ]
    assert second[14:19] == ["23", "Default", "Disabled", "Enabled", "[N/A]"]


def test_only_compute_processes_are_queried_and_names_may_hold_commas(machine):
    done = machine.write(LAB).smi("--query-compute-apps=pid,used_memory,process_name", "--format=csv")
    assert (
        done.stdout
        == "pid, used_gpu_memory [MiB], process_name\n41, 30000 MiB, /opt/my envs/python, really\n"
    )


@pytest.mark.parametrize(
    "field, driver, known",
    [
        ("clocks_event_reasons.active", "535.104.05", True),
        ("clocks_throttle_reasons.active", "535.104.05", False),
        ("clocks_event_reasons.active", "470.82", False),
        ("clocks_throttle_reasons.active", "470.82", True),
        ("memory.reserved", "470.82", False),
        ("memory.reserved", "510.47.03", True),
        ("no.such.field", "550.1", False),
    ],
)
def test_one_unknown_field_fails_the_whole_query(machine, field, driver, known):
    done = machine.write(f'driver = "{driver}"\n' + LAB).smi(
        f"--query-gpu=index,{field}", "--format=csv,noheader"
    )
    assert done.returncode == (0 if known else 2)
    if not known:
        assert done.stdout == f'Field "{field}" is not a valid field to query.\n\n'


@pytest.mark.parametrize(
    "driver, width, name",
    [
        ("450.51.06", 79, "GeForce GTX 108..."),
        ("525.60.13", 79, "NVIDIA GeForce ..."),
        ("535.104.05", 89, "NVIDIA GeForce GTX 1080 Ti"),
        ("550.163.01", 91, "NVIDIA GeForce GTX 1080 Ti"),
    ],
)
def test_the_table_has_the_shape_of_its_branch(machine, driver, width, name):
    lines = machine.write(f'driver = "{driver}"\n' + LAB).smi().stdout.splitlines()
    assert {len(line) for line in lines[1:]} == {width}
    assert f"| NVIDIA-SMI {driver} " in lines[2]
    row = next(line for line in lines if re.match(r"\|\s+1\s", line))
    assert name in row and " On " in row
    used = next(line for line in lines if "MiB /" in line)
    assert re.search(r"\s30000MiB /\s+40(960|536)MiB \|\s+97%\s+E. Process \|$", used)
    assert re.search(
        r"^\|    0   N/A  N/A        41      C   /opt/my envs/python, really\s+30000MiB \|$",
        "\n".join(lines),
        re.M,
    )
    assert re.search(
        r"^\|    1   N/A  N/A        42      G   /usr/lib/xorg/Xorg\s+120MiB \|$", "\n".join(lines), re.M
    )


def test_the_long_report_has_a_label_and_a_value_on_a_line(machine):
    lines = machine.write(LAB).smi("-q").stdout.splitlines()
    assert "Attached GPUs                             : 2" in lines
    assert [line for line in lines if line.startswith("GPU ")] == [
        "GPU 00000000:01:00.0",
        "GPU 00000000:0A:00.0",
    ]
    assert [line for line in lines if "Display Active" in line] == [
        "    Display Active                        : Disabled",
        "    Display Active                        : Enabled",
    ]
    assert "        Process ID                        : 41" in lines
    assert "            Type                          : G" in lines


def test_the_xml_has_graphics_processes_too(machine):
    root = xml.fromstring(machine.write(LAB).smi("-q", "-x").stdout.split("\n", 2)[2])
    gpus = root.findall("gpu")
    assert [g.find("product_name").text for g in gpus] == [
        "NVIDIA A100-SXM4-40GB",
        "NVIDIA GeForce GTX 1080 Ti",
    ]
    assert [
        (p.find("pid").text, p.find("type").text, p.find("used_memory").text)
        for p in root.iter("process_info")
    ] == [("41", "C", "30000 MiB"), ("42", "G", "120 MiB")]
    assert gpus[0].find("fb_memory_usage/used").text == "30000 MiB"


def test_a_part_of_the_devices(machine):
    machine.write(LAB)
    assert machine.smi("-i", "1", "--query-gpu=index", "--format=csv,noheader").stdout == "1\n"
    assert machine.smi("-i", "7", "-L").returncode == 6


@pytest.mark.parametrize(
    "init_result, status, what",
    [
        (9, 9, "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver"),
        (18, 18, "Failed to initialize NVML: Driver/library version mismatch"),
        (999, 255, "Failed to initialize NVML: Unknown Error"),
        (4, 4, "Failed to initialize NVML: Insufficient Permissions"),
    ],
)
def test_a_driver_that_does_not_start(machine, init_result, status, what):
    done = machine.write(f"init_result = {init_result}\n" + LAB).smi()
    assert done.returncode == status and done.stdout.startswith(what)


@pytest.mark.parametrize(
    "arguments", [["--query-gpu=index"], ["--query-gpu=index", "--format=xml"], ["--nonsense"]]
)
def test_bad_arguments(machine, arguments):
    assert machine.write(LAB).smi(*arguments).returncode == 2
