"""`berth store doctor` and `init`, with a real etcd."""

import json
import stat

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
def store(lab, etcd):
    """`berth store WORDS` with this etcd. The findings as {check: (level, found)}, the last of each."""

    def ask(*words, status=0):
        answer = lab.berth("store", *words, "--store", etcd.url, "--json")
        assert answer.status == status, answer.out + answer.err
        findings = checked(answer, "doctor")["findings"]
        return {each["check"]: (each["level"], each["found"]) for each in findings}

    return ask


def test_an_etcd_that_asks_nobody_works_and_is_warned_of(store, etcd):
    found = store("doctor")
    assert found[etcd.url][0] == "pass"
    assert found["members"] == ("pass", "1; while it is down, nothing in the line of the lab starts")
    assert found["users"][0] == "warn"
    assert found["rights"] == ("pass", "the agents may read and write the line")
    assert found["history"] == ("pass", "the agents tell etcd to forget what is older than an hour")
    assert found["line"] == ("pass", "0 requests wait")
    # It has looked, and left nothing.
    assert etcd.ask("kv/range", key="\0", range_end="\0").get("kvs", []) == []


def test_init_makes_a_user_who_may_do_what_the_line_needs_and_no_more(store, etcd, tmp_path):
    agents, root = tmp_path / "of-agents", tmp_path / "of-root"
    files = ("--store-password-file", agents, "--root-password-file", root)
    found = store("init", *files)
    assert found["users"] == ("pass", "etcd asks for a password; the agents are its user berth")
    assert found["rights"] == ("pass", "the user berth may read and write the line")
    assert all(level != "fail" for level, _ in found.values())
    assert [stat.S_IMODE(file.stat().st_mode) for file in (agents, root)] == [0o600, 0o600]

    login = {"name": "berth", "password": agents.read_text().strip()}
    etcd.token = etcd.post("auth/authenticate", login)["token"]
    etcd.ask("kv/put", key="/berth/1/x", value="x")
    assert etcd.refuses("kv/put", key="/other", value="x")
    assert etcd.refuses("kv/put", key="/berth/10", value="x")
    assert etcd.refuses("kv/range", key="/other")

    # Once more, and on another machine with the same files, nothing changes.
    words = agents.read_text(), root.read_text()
    store("init", *files)
    assert (agents.read_text(), root.read_text()) == words
    found = store("doctor", "--store-user", "berth", "--store-password-file", agents)
    assert found["rights"][0] == "pass"
    # Whoever names no user is told that one is needed.
    found = store("doctor", status=1)
    assert found["users"] == ("fail", "etcd asks for a user and a password, and none are named")


def test_init_without_roots_password_leaves_etcd_open_and_says_so(store, tmp_path):
    found = store("init", "--store-password-file", tmp_path / "of-agents")
    assert found["passwords"] == ("warn", "etcd asks nobody for one yet")
    assert found["users"][0] == "warn"


def test_a_new_password_is_not_written_beside_one_that_holds(lab, store, etcd, tmp_path):
    store("init", "--store-password-file", tmp_path / "one", "--root-password-file", tmp_path / "root")
    words = ("--store", etcd.url, "--root-password-file", tmp_path / "root")
    answer = lab.berth("store", "init", *words, "--store-password-file", tmp_path / "two")
    assert answer.status == 1
    assert "etcd has a user berth already: copy its password from another machine into" in answer.err
    assert not (tmp_path / "two").exists()
    answer = lab.berth("store", "init", "--store", etcd.url, "--store-password-file", tmp_path / "one")
    assert answer.status == 2
    assert "name the file with that of its root with --root-password-file" in " ".join(answer.err.split())


def test_what_is_wrong_with_a_store_is_told(lab, store, etcd, tmp_path):
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
    answer = lab.berth("store", "doctor", "--store", etcd.url, *words)
    assert answer.status == 1
    assert "does not let in the user berth" in answer.out
    (tmp_path / "pw").write_text("of berth")
    down = f"http://127.0.0.1:{free_port()}"
    found = store("doctor", "--store", down, *words)
    assert found[down][0] == "warn"
    assert found[etcd.url][0] == "pass"


def test_what_is_odd_in_the_line_is_told(lab, store, etcd):
    (lab.directory / "site.toml").write_text('hosts = ["gpu1", "alice@gpu2"]\n')
    ticket = {"home": "desk3", "uid": 1, "lane": 1, "hosts": ["gpu2", "gpu9"], "joined": []}
    etcd.ask("kv/put", key="/berth/1/ticket/desk3-" + "ab" * 16, value=json.dumps(ticket))
    etcd.ask("kv/put", key="/berth/1/alive/desk1", value="1.0")
    etcd.ask("kv/put", key="/berth/1/alive/desk2", value="1.1")
    found = store("doctor")
    assert found["machines"] == ("warn", "their Berths differ: 1.0 on desk1, 1.1 on desk2")
    answer = " ".join(lab.berth("store", "doctor", "--store", etcd.url).out.split())
    assert "WARN line: requests wait for hosts that this machine does not name: gpu9" in answer
    assert "WARN line: no agent runs where these requests were made: desk3" in answer


def test_the_file_of_an_agent_says_where_the_store_is(lab, etcd, tmp_path):
    file = tmp_path / "serve.toml"
    file.write_text(f'listen = ["127.0.0.1:0"]\nstore = ["{etcd.url}"]\n')
    answer = lab.berth("store", "doctor", "--config", file)
    assert answer.status == 0
    assert "works, with 2 warnings" in answer.out
    assert lab.berth("store", "doctor", "--config", file, "--store", etcd.url).status == 2
    assert lab.berth("store", "doctor").status == 2


def test_no_member_answers(lab):
    url = f"http://127.0.0.1:{free_port()}"
    answer = lab.berth("store", "doctor", "--store", url)
    assert answer.status == 1
    assert f"FAIL {url}: nobody listens" in " ".join(answer.out.split())
    assert lab.berth("store", "init", "--store", url, "--store-password-file", "/nowhere/x").status == 1
