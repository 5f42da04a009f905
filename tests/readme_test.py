"""The picture in the README is what the program prints, but for users, pids and ages."""

import getpass
import pathlib
import re
import sys

README = (pathlib.Path(__file__).parents[1] / "README.md").read_text()
MACHINE = """driver = "570.124.06"
[[device]]
model = "A100"
utilization = 97
power_w = 312
temperature = 61
[[device.process]]
pid = {job}
used_mib = 31000
[[device]]
model = "A100"
utilization = 35
power_w = 140
temperature = 48
[[device.process]]
pid = {outsider}
used_mib = 21000
[[device]]
model = "A100"
[[device]]
model = "A100"
hidden_mib = 700
"""


def blurred(text: str) -> str:
    """Without what differs from run to run, and without the columns that it moves."""
    text = re.sub(rf"\b(ada|bob|{getpass.getuser()})\b", "USER", text)
    text = re.sub(r"\b\d+ (s|min|h)\b|\b\d\d:\d\d\b", "TIME", text)
    text = re.sub(r"^[0-9a-f]{6}(?=  )|(?<=lease )[0-9a-f]{6}\b", "LEASE", text, flags=re.MULTILINE)
    text = re.sub(r"\b\d{2,}  USER|(?<=pid )\d+|(?<=TIME  )\d{2,}", "PID USER", text)
    return re.sub(r" +", " ", text)


def pictures() -> dict:
    """Command -> what the README shows of it."""
    shown = re.findall(r"^```console\n\$ (berth [^\n]*)\n(.+?)^```", README, re.MULTILINE | re.DOTALL)
    return {command: text for command, text in shown if not text.startswith("$")}


def test_the_readme_shows_what_the_program_prints(make_lab):
    lab = make_lab("1xA100")
    (lab.directory / "bin").mkdir()
    (lab.directory / "bin/python").symlink_to(sys.executable)
    lab.env["PATH"] += f":{lab.directory}/bin"
    for name in ("train.py", "eval.py"):
        (lab.directory / name).write_text("import time\nprint('started', flush=True)\ntime.sleep(1000)\n")
    outsider = lab.start("python", "eval.py", cwd=lab.directory)
    holder = lab.start_berth("run", "--", "python", "train.py", cwd=lab.directory)
    assert outsider.stdout.readline() == holder.stdout.readline() == "started\n"
    (job,) = pathlib.Path(f"/proc/{holder.pid}/task/{holder.pid}/children").read_text().split()
    lab.change(MACHINE.format(outsider=outsider.pid, job=job))
    assert len(pictures()) == 2
    for command, shown in pictures().items():
        answer = lab.berth(*command.split()[1:])
        assert blurred(answer.out + answer.err) == blurred(shown)
