"""Who gets in, and what clients can do to the agent and to each other."""

import contextlib
import json
import os
import pathlib
import resource
import selectors
import signal
import socket
import stat
import subprocess

import pytest
from agent import TOKEN, Agent, curl
from jobs import eventually, holder

HEALTHZ = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"


def refusal(machine, *options) -> str:
    answer = machine.berth("serve", *options)
    assert answer.status in (1, 2)
    return " ".join(answer.err.split())


def test_another_address_needs_a_reason_why_it_is_safe(machine, token_file):
    everywhere = ("--listen", "0.0.0.0:0")
    assert "give --token-file or --tls-clients, or allow it with --insecure" in refusal(machine, *everywhere)
    Agent(machine, "--token-file", token_file, listen="0.0.0.0:0").ends()
    Agent(machine, "--insecure", listen="0.0.0.0:0")


def test_settings_at_fault_are_named(machine):
    for options, words in (
        (["--listen", "localhost:80"], "must be ADDRESS:PORT in numbers"),
        (["--tls-cert", "x"], "--tls-cert and --tls-key belong together"),
        (["--tls-clients", "x"], "--tls-clients needs TLS"),
        (["--token-file", "/nonexistent"], "reading the token from /nonexistent: No such file or directory"),
        (["--tls-cert", "/nonexistent", "--tls-key", "/nonexistent"], "reading the certificate /nonexistent"),
        (["--config", "/nonexistent"], "reading the settings in /nonexistent: No such file or directory"),
        (["--socket", "/" + "x" * 200], "a path must be shorter than 108 bytes"),
        (["--every", "0"], "must be from 1s to 1h"),
    ):
        assert words in refusal(machine, *options)


def test_a_token_that_all_may_read_is_refused(machine, token_file):
    token_file.chmod(0o644)
    assert f"every user may read it; chmod o= {token_file}" in refusal(machine, "--token-file", token_file)


def test_a_port_that_is_taken_is_named(machine, agent):
    assert f"127.0.0.1:{agent.port} is taken by another program" in refusal(
        machine, "--listen", f"127.0.0.1:{agent.port}"
    )


def test_the_socket_of_a_killed_server_is_taken_over_and_that_of_a_living_one_is_not(machine, agent):
    assert "is taken by another program" in refusal(
        machine, "--listen", "127.0.0.1:0", "--socket", agent.socket
    )
    agent.process.kill()
    agent.process.wait()
    assert curl("--unix-socket", Agent(machine).socket, "http://berth/healthz").stdout == "ok\n"


def test_a_socket_whose_server_is_stuck_is_taken_and_holds_up_nobody(machine):
    path = machine.directory / "stuck.sock"
    with socket.socket(socket.AF_UNIX) as stuck, contextlib.ExitStack() as stack:
        stuck.bind(str(path))
        stuck.listen(0)
        with contextlib.suppress(BlockingIOError):
            while True:
                client = stack.enter_context(socket.socket(socket.AF_UNIX))
                client.setblocking(False)
                client.connect(str(path))
        assert "is taken by another program" in refusal(machine, "--listen", "127.0.0.1:0", "--socket", path)
        assert path.exists()


def test_every_user_of_the_machine_may_ask_through_the_socket(agent):
    assert stat.S_IMODE(agent.socket.stat().st_mode) == 0o666


def test_a_file_that_is_no_socket_is_left_alone(machine):
    notes = machine.directory / "notes"
    notes.write_text("mine")
    said = refusal(machine, "--listen", "127.0.0.1:0", "--socket", notes)
    assert f"{notes} is taken by another program (ss -lntxp shows it) or is no socket" in said
    assert notes.read_text() == "mine"


def test_only_the_token_lets_in(machine, token_file):
    agent = Agent(machine, "--token-file", token_file)
    for wrong in ("", "Bearer", f"Bearer {TOKEN[:-1]}x", f"Bearer {TOKEN}x", f"Basic {TOKEN}"):
        assert agent.get("/api/v1/snapshot", Authorization=wrong)[0] == 401, wrong
    assert agent.get("/metrics")[0] == agent.get("/api/v1/events")[0] == 401
    for scheme in ("Bearer", "bearer", "BEARER"):
        assert agent.get("/api/v1/snapshot", Authorization=f"{scheme} {TOKEN}")[0] == 200
    assert agent.get("/healthz")[0] == 200
    assert curl("--unix-socket", agent.socket, "http://berth/metrics").stdout.startswith("# HELP")
    assert TOKEN not in pathlib.Path(f"/proc/{agent.process.pid}/cmdline").read_text()


def test_a_page_of_another_site_cannot_read_it(agent):
    for host in ("localhost", f"127.0.0.1:{agent.port}", "[::1]:80"):
        assert agent.get("/healthz", Host=host)[0] == 200
    for host in ("evil.example", f"evil.example:{agent.port}", "127.0.0.1.evil.example"):
        assert agent.get("/healthz", Host=host)[0] == 421


def test_it_answers_to_the_names_that_it_is_told(machine):
    agent = Agent(machine, "--host", "gpus.lab", "--insecure")
    for host in ("gpus.lab", "GPUS.lab:80", "localhost"):
        assert agent.get("/healthz", Host=host)[0] == 200
    status, header, text = agent.get("/healthz", Host="evil.example")
    assert status == 421
    assert "`--host NAME` lets it answer to NAME too" in text
    assert header["Cross-Origin-Resource-Policy"] == "same-origin"
    assert "must be a name alone" in refusal(machine, "--host", "http://gpus.lab:80")


def test_a_key_that_is_not_the_certificates_is_refused_at_start_and_at_reload(machine, authority, tmp_path):
    certificate, key = tmp_path / "server.pem", tmp_path / "server.key"
    certificate.write_bytes((authority / "server.pem").read_bytes())
    for words in (["ec", "-pkeyopt", "ec_paramgen_curve:P-256"], ["rsa:2048"]):
        other = tmp_path / "other.key"
        made = ["-nodes", "-keyout", other, "-out", tmp_path / "other.pem", "-subj", "/CN=x"]
        subprocess.run(["openssl", "req", "-x509", "-newkey", *words, *made], check=True, capture_output=True)
        key.write_bytes(other.read_bytes())
        said = refusal(machine, "--tls-cert", certificate, "--tls-key", key)
        assert f"the key {key} is not that of the certificate {certificate}" in said
    key.write_bytes((authority / "server.key").read_bytes())
    agent = Agent(machine, "--tls-cert", certificate, "--tls-key", key)
    key.write_bytes(other.read_bytes())
    agent.process.send_signal(signal.SIGHUP)
    assert "went on with the old settings: the key" in agent.err.line()
    assert curl("--cacert", authority / "ca.pem", f"https://127.0.0.1:{agent.port}/healthz").stdout == "ok\n"


def test_an_older_tls_has_forward_secrecy_and_one_cipher_for_all(machine, authority):
    cert, key, ca = (authority / name for name in ("server.pem", "server.key", "ca.pem"))
    agent = Agent(machine, "--tls-cert", cert, "--tls-key", key)
    url = f"https://127.0.0.1:{agent.port}/healthz"
    older = ("--cacert", ca, "--tls-max", "1.2", "--ciphers")
    assert curl(*older, "ECDHE-ECDSA-AES128-GCM-SHA256", url).stdout == "ok\n"
    assert curl(*older, "ECDHE-ECDSA-AES256-SHA384:ECDHE-ECDSA-AES128-SHA", url).returncode != 0


def test_tls_with_client_certificates(machine, authority):
    cert, key, ca = (authority / name for name in ("server.pem", "server.key", "ca.pem"))
    agent = Agent(machine, "--tls-cert", cert, "--tls-key", key, "--tls-clients", ca, listen="0.0.0.0:0")
    url = f"https://127.0.0.1:{agent.port}/readyz"
    mine = ("--cert", authority / "client.pem", "--key", authority / "client.key")
    assert agent.scheme == "https"
    assert curl("--cacert", ca, *mine, url).stdout == "ready\n"
    assert curl("--cacert", ca, url).returncode != 0
    assert curl("--cacert", ca, *mine, "--tls-max", "1.1", url).returncode != 0
    assert curl(
        "--cacert", ca, *mine, "-N", "-m", "1", url.replace("readyz", "api/v1/events")
    ).stdout.startswith("event: snapshot")
    assert curl(url.replace("https", "http")).returncode != 0


@pytest.mark.parametrize(
    ("request_text", "status"),
    [
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400),
        (b"GET\r\n\r\n", 400),
        (b"GET / HTTP/9.9\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost localhost\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400),
        (b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * 20_000 + b"\r\n\r\n", 431),
        (b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999\r\n\r\n", 413),
        (b"POST /api/v1/leases HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n", 405),
        (b"DELETE /api/v1/leases HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", 405),
        (b"GET /../../etc/passwd HTTP/1.0\r\n\r\n", 404),
        (b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: gzip\r\n\r\n" + HEALTHZ, 400),
        (
            b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
            400,
        ),
        (b"GET /healthz HTTP/1.1\r\n\r\n", 400),
        (b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n", 400),
        (b"GET http://evil.example/healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", 421),
        (b"GET http://localhost/healthz HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n", 200),
    ],
    ids=[
        *("tls", "cut", "version", "colon", "lengths", "long", "body", "chunks", "delete", "climbing"),
        *("coding", "codings", "hostless", "hosts", "foreign-target", "own-target"),
    ],
)
def test_malformed_requests_get_an_answer_and_the_connection_ends(agent, request_text, status):
    answer = agent.raw(request_text)
    assert answer.split()[1] == str(status).encode()
    assert b"connection: close" in answer.lower()
    assert answer.count(b"HTTP/1.1 ") == 1
    assert agent.get("/healthz")[0] == 200


def test_requests_that_come_together_are_answered_in_order(agent):
    one = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
    last = b"GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    answer = agent.raw(one * 3 + last)
    assert answer.count(b"\r\n\r\nok\n") == 3
    assert answer.endswith(b"ready\n")


def test_who_sends_a_request_bit_by_bit_is_shown_out(machine):
    agent = Agent(machine, "--patience", "1s")
    with agent.connect() as slow:
        # A byte now and then does not make the time longer.
        slow.settimeout(0.1)
        with contextlib.suppress(ConnectionError):
            for byte in b"GET /healthz HTTP/1.1\r\nX-Slow: " + b"x" * 100:
                slow.sendall(bytes([byte]))
                with contextlib.suppress(TimeoutError):
                    if not slow.recv(1):
                        break
            else:
                raise AssertionError("it waited for all of a slow request")


def test_a_reader_who_stops_reading_holds_up_nobody(agent):
    asleep = agent.events()
    awake = agent.events()
    for _ in range(2):
        awake.next("snapshot")
    assert agent.get("/healthz")[0] == 200
    asleep.close()


def test_a_thousand_streams_each_get_every_event_from_one_thread(machine):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 3000:
        pytest.skip("needs 3,000 descriptors")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 3000), hard))
    agent = Agent(machine)
    threads = os.listdir(f"/proc/{agent.process.pid}/task")
    selector = selectors.DefaultSelector()
    seen = {}
    with contextlib.ExitStack() as stack:
        for _ in range(1000):
            stream = stack.enter_context(agent.connect())
            stream.sendall(b"GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
            selector.register(stream, selectors.EVENT_READ)
            seen[stream] = b""

        def all_have(count: int) -> bool:
            for key, _ in selector.select(0.1):
                seen[key.fileobj] += key.fileobj.recv(1 << 20)
            return all(text.count(b"event: snapshot") >= count for text in seen.values())

        eventually(lambda: all_have(3))
        assert os.listdir(f"/proc/{agent.process.pid}/task") == threads
        assert agent.get("/healthz")[0] == 200
    selector.close()


def test_secrets_in_commands_are_told_to_nobody(machine, agent):
    command = ("sh", "-c", "sleep 600", "train.py", "--api-key=hunter2", "--token", "hunter3")
    job = machine.start_berth("run", "-n", "1", "--", *command)
    (lease,) = eventually(lambda: agent.json("/api/v1/leases")["leases"])
    assert lease["command"] == "sh -c sleep 600 train.py --api-key=*** --token ***"
    for path in ("/api/v1/snapshot", "/api/v1/hosts", "/cluster_status", "/metrics"):
        assert "hunter" not in agent.get(path)[2]
    assert "hunter2" in machine.berth("list", "--json").out
    job.terminate()


def test_a_site_may_have_commands_told_to_nobody(machine, agent):
    (machine.directory / "site.toml").write_text('commands = "none"\n')
    job = holder(machine)
    (lease,) = eventually(lambda: agent.json("/api/v1/leases")["leases"])
    assert lease["command"] is None
    job.ends()


def test_what_others_wrote_cannot_break_out_of_json_or_labels(machine, agent):
    job = holder(machine, "--note", '</script>"}\\')
    (lease,) = eventually(lambda: agent.json("/api/v1/leases")["leases"])
    assert lease["note"] == '</script>"}\\'
    assert json.dumps(lease["note"]) in agent.get("/api/v1/snapshot")[2]
    job.ends()
