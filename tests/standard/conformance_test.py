"""Each client and Berth keep docs/standard.md, each beside itself and beside the other. And a program that breaks a
rule is noticed."""

import os
import subprocess
import sys

import pytest
from conformance import CHECKS, FIRST_LEVEL, UUIDS, Folder, try_all, try_one
from standard.programs import CLIENTS, LANGUAGES, berth, built, can_be_built, client, uuids

# A sanitized program does the same, and more slowly.
pytestmark = pytest.mark.release_only

LONGEST_CLIENT = 75
# Looks at the name once, and locks that file for ever after.
KEEPS_IT_OPEN = """import fcntl
    kept_file = None
    def kept(uuid, share):
        global kept_file
        path = os.environ["BERTH_DIR"] + "/devices/" + uuid
        kept_file = kept_file or os.open(path, os.O_RDWR)
        try:
            fcntl.flock(kept_file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return kept_file
        except BlockingIOError:
            return None
    """


@pytest.fixture(scope="session")
def programs(tmp_path_factory):
    """A client by its language."""

    def of(language):
        if not can_be_built(language):
            pytest.skip(f"needs a compiler of {language}")
        return client(built(language, tmp_path_factory.getbasetemp()))

    return of


def wrong(results: dict) -> dict:
    return {check.__name__: said for check, said in results.items() if said}


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_client_keeps_the_standard_beside_itself(programs, language):
    program = programs(language)
    results = try_all(program, program)
    assert list(results) == CHECKS
    assert wrong(results) == {}


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_client_keeps_the_standard_beside_berth(programs, make_machine, language):
    machine = make_machine("2xH100")
    assert wrong(try_all(programs(language), berth(machine), uuids(machine))) == {}


def test_berth_keeps_the_standard_beside_a_client(programs, make_machine):
    machine = make_machine("2xH100")
    results = try_all(berth(machine), programs("sh"), uuids(machine))
    assert list(results) == [check for check in CHECKS if check not in FIRST_LEVEL]
    assert wrong(results) == {}


@pytest.mark.parametrize("language", LANGUAGES)
def test_where_locks_cannot_be_read_nothing_is_alive(programs, language, tmp_path):
    # It can be opened, and each reading fails.
    mount = 'mount --bind /proc/$$/mem /proc/locks && exec "$@"'
    hidden = ["unshare", "--mount", "sh", "-c", mount, "-"]
    if subprocess.run([*hidden, "true"], capture_output=True).returncode != 0:
        pytest.skip("needs the right to mount")
    program = programs(language)
    here = Folder(tmp_path, program, program, UUIDS)
    (here.directory / "queue/00000000000003e8").touch(0o644)
    words = program.words("take", here.gpu, ["echo", "has it"])
    env = {**os.environ, "BERTH_DIR": str(here.directory)}
    answer = subprocess.run([*hidden, *words], env=env, capture_output=True, text=True)
    assert (answer.returncode, answer.stdout, answer.stderr) == (0, "has it\n", "")


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_client_is_short(language):
    (file,) = (CLIENTS / language).glob("hold.*")
    assert len(file.read_text().splitlines()) <= LONGEST_CLIENT


# Of each program that breaks a rule: what it has in place of what the client in Python has, and the
# check that fails.
BREACHES = {
    "locks nothing": ({"fcntl.flock(file,": "(lambda *_: 0)(file,"}, "takes"),
    "locks in part what it takes whole": ({"else fcntl.LOCK_EX": "else fcntl.LOCK_SH"}, "takes"),
    "lets two have the whole": ({"else fcntl.LOCK_EX": "else fcntl.LOCK_SH"}, "holds"),
    "locks whole what it shares": ({"fcntl.LOCK_SH if share": "fcntl.LOCK_EX if share"}, "shares"),
    "keeps the lock to itself": (
        {"os.execvp(command[0], command)": "import subprocess; subprocess.run(command)"},
        "is_killed",
    ),
    "drops the lock": ({"os.set_inheritable(file, True)": "pass"}, "execs"),
    "heeds no queue": (
        {"if alive(ticket.path": "if 0 * alive(ticket.path"},
        "lets_the_queue_go_first",
    ),
    "heeds the dead": (
        {"return len(inodes.inter": "return len(inodes) or len(inodes.inter"},
        "lets_the_queue_go_first",
    ),
    "makes the file": ({"os.O_RDWR | SAFELY": "os.O_RDWR | os.O_CREAT | SAFELY"}, "makes_no_file"),
    "says nothing of what to do": ({"sudo berth init": ""}, "makes_no_file"),
    "compares nothing": (
        {"file = try_hold(": "file = kept(", "while not": KEEPS_IT_OPEN + "while not"},
        "compares",
    ),
    "follows links": ({"os.O_NOFOLLOW | ": "", "os.lstat": "os.stat"}, "opens_what_is_a_file"),
    "looks all the time": ({"time.sleep(1)": "time.sleep(0.1)"}, "looks_seldom"),
    "believes a lease that has ended": (
        {"is_named and alive(tickets)": "is_named and len(tickets)"},
        "has_what_its_lease_has",
    ),
    "heeds what anybody may write": ({"and not file.st_mode & 0o022": ""}, "heeds_no_link"),
    "looks for each lease in one folder": (
        {'folder += f"/inside/{lease}"': "pass"},
        "has_what_its_inner_lease_has",
    ),
    "believes a lease in one that has ended": (
        {"alive(tickets) == len(tickets)": "alive(tickets[-1:]) == 1"},
        "has_what_its_inner_lease_has",
    ),
}


@pytest.mark.parametrize("breach", BREACHES)
def test_a_program_that_breaks_a_rule_is_noticed(tmp_path, breach):
    edits, name = BREACHES[breach]
    texts = {file: (CLIENTS / "python" / file).read_text() for file in ("hold.py", "example.py")}
    for old, new in edits.items():
        assert any(old in text for text in texts.values()), old
        texts = {file: text.replace(old, new) for file, text in texts.items()}
    for file, text in texts.items():
        (tmp_path / file).write_text(text)
    program = client([sys.executable, "-S", "-E", tmp_path / "example.py"])
    (check,) = [check for check in CHECKS if check.__name__ == name]
    assert try_one(check, program, program, UUIDS) != ""
