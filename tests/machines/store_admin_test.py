"""`berth store doctor`, and the lines that make a user for the agents, with a real etcd."""

import os
import pathlib
import re
import shutil
import stat
import subprocess
import urllib.error

import pytest
from etcd import ETCD, Etcd
from fleet_of_hosts import free_port
from schemas import checked

pytestmark = [pytest.mark.store, pytest.mark.skipif(ETCD is None, reason="needs etcd-server")]


@pytest.fixture
def etcd(tmp_path):
    made = Etcd(tmp_path)
    made.start()
    yield made
    made.kill()


@pytest.fixture
def store(machine, etcd):
    """`berth store WORDS` with this etcd. The findings as {check: (level, found)}, the last of each."""

    def ask(*words, status=0):
        answer = machine.berth("store", *words, "--store", etcd.url, "--json")
        assert answer.status == status, answer.out + answer.err
        findings = checked(answer, "doctor")["findings"]
        return {each["check"]: (each["level"], each["found"]) for each in findings}

    return ask


def test_an_etcd_that_asks_nobody_works_and_is_warned_of(store, etcd):
    found = store("doctor")
    assert found[etcd.url][0] == "pass"
    assert found["users"][0] == "warn"
    assert found["rights"] == ("pass", "the agents may read and write the queue")
    # It has looked, and left nothing.
    assert etcd.ask("kv/range", key="\0", range_end="\0").get("kvs", []) == []


# etcd's program for its admins.
ETCDCTL = shutil.which("etcdctl")
PAGE = pathlib.Path(__file__).parents[2] / "docs/machines.md"


def lines_that_make_the_user() -> str:
    """The block of the page, as it stands there."""
    after = PAGE.read_text().partition("#### Users of etcd\n")[2]
    return next(
        found for found in re.findall(r"(?:^    .+\n)+", after, re.MULTILINE) if "auth enable" in found
    )


@pytest.mark.skipif(ETCDCTL is None, reason="needs etcd-client")
def test_the_lines_of_the_page_make_a_user_who_may_do_what_the_line_needs_and_no_more(store, etcd, tmp_path):
    where = os.environ | {"ETCDCTL_API": "3", "ETCDCTL_ENDPOINTS": etcd.url}
    subprocess.run(
        ["bash", "-e", "-c", lines_that_make_the_user()], cwd=tmp_path, env=where, check=True, timeout=60
    )
    password = tmp_path / "store-password"
    assert [
        stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("store-password", "root-password")
    ] == [0o600] * 2

    found = store("doctor", "--store-user", "berth", "--store-password-file", password)
    assert "users" not in found
    assert found["rights"] == ("pass", "the user berth may read and write the queue")
    assert all(level != "fail" for level, _ in found.values())

    login = {"name": "berth", "password": password.read_text().strip()}
    etcd.token = etcd.post("auth/authenticate", login)["token"]
    etcd.ask("kv/put", key="/berth/1/x", value="x")
    etcd.ask("kv/range", key="/berth/1/x")
    for beyond in ("/other", "/berth/1", "/berth/10", "/berth/2/x"):
        assert etcd.refuses("kv/put", key=beyond, value="x")
        assert etcd.refuses("kv/range", key=beyond)
    assert etcd.refuses("kv/range", key="\0", range_end="\0")
    with pytest.raises(urllib.error.HTTPError):
        etcd.post("auth/user/add", {"name": "more", "password": "more"})

    # Whoever names no user is told that one is needed.
    found = store("doctor", status=1)
    assert found["users"] == ("fail", "etcd asks for a user and a password, and none are named")


def test_what_is_wrong_with_a_store_is_told(machine, store, etcd, tmp_path):
    # A user without the rights.
    (tmp_path / "pw").write_text("of games")
    (tmp_path / "pw").chmod(0o600)
    etcd.want_passwords()
    etcd.post("auth/user/add", {"name": "games", "password": "of games"})
    found = store("doctor", "--store-user", "games", "--store-password-file", tmp_path / "pw", status=1)
    assert found["rights"][0] == "fail"
    assert "permission denied" in found["rights"][1]
    # A wrong password, and a member that is down beside one that is up.
    (tmp_path / "pw").write_text("another")
    words = ("--store-user", "berth", "--store-password-file", tmp_path / "pw")
    answer = machine.berth("store", "doctor", "--store", etcd.url, *words)
    assert answer.status == 1
    assert "does not let in the user berth" in answer.out
    (tmp_path / "pw").write_text("of berth")
    down = f"http://127.0.0.1:{free_port()}"
    found = store("doctor", "--store", down, *words)
    assert found[down][0] == "warn"
    assert found[etcd.url][0] == "pass"


def test_an_etcd_without_room_may_be_read_and_not_written(machine, store, etcd):
    member = etcd.post("maintenance/status", {})["header"]["member_id"]
    etcd.post("maintenance/alarm", {"action": "ACTIVATE", "memberID": member, "alarm": "NOSPACE"})
    found = store("doctor", status=1)
    assert "rights" not in found
    assert found["room"] == (
        "fail",
        "etcd is full and takes no change (NOSPACE): no request in the queue of the lab starts",
    )
    told = " ".join(machine.berth("store", "doctor", "--store", etcd.url).out.split())
    assert "`etcdctl compact 1`, then `etcdctl defrag`, then `etcdctl alarm disarm`" in told


def test_the_file_of_an_agent_says_where_the_store_is(machine, etcd, tmp_path):
    file = tmp_path / "serve.toml"
    file.write_text(f'listen = ["127.0.0.1:0"]\nstore = ["{etcd.url}"]\n')
    answer = machine.berth("store", "doctor", "--config", file)
    assert answer.status == 0
    assert "works, with 1 warning" in answer.out
    assert machine.berth("store", "doctor", "--config", file, "--store", etcd.url).status == 2
    assert machine.berth("store", "doctor").status == 2


def test_no_member_answers(machine):
    url = f"http://127.0.0.1:{free_port()}"
    answer = machine.berth("store", "doctor", "--store", url)
    assert answer.status == 1
    assert f"FAIL {url}: nobody listens" in " ".join(answer.out.split())
