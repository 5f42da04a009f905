"""Requests that docs/openapi.yaml allows, and those beside it: each answer must be one that it describes."""

import contextlib
import http.client
import json
import socket
import urllib.parse

import hypothesis
import hypothesis.strategies as draw
import pytest
from agent import Agent
from hub import Hub
from schemas import OPENAPI, check_described, described_answer
from simulated_machine import DEADLINE_S

# The same requests in each run, and few of them: ./dev fuzz looks for what is rare.
BOUNDED = hypothesis.settings(
    derandomize=True,
    database=None,
    deadline=None,
    max_examples=100,
    suppress_health_check=list(hypothesis.HealthCheck),
)
TEXT = draw.text(draw.characters(codec="utf-8"), max_size=20)
TOKEN = "a-token-of-the-test"  # noqa: S105


@pytest.fixture(params=["agent", "agent with a token", "hub", "hub of others"])
def server(request, make_machine):
    """Of each kind."""
    machine = make_machine("2xT4")
    gone = "gone=http://127.0.0.1:1"
    if request.param.startswith("hub"):
        own = ["own=self"] if request.param == "hub" else []
        yield Hub(machine, *own, gone, options=["--no-history"])
        return
    file = machine.directory / "token"
    file.write_text(TOKEN)
    file.chmod(0o600)
    yield Agent(machine, *(("--token-file", file) if "token" in request.param else ()))


def value_of(schema: dict, example) -> draw.SearchStrategy[str]:
    """What the schema wants, and anything else."""
    wanted = [
        TEXT,
        draw.sampled_from(["", "0", "-1", "1e9", "18446744073709551616", "9d", "1s", "a=b&c", "%"]),
    ]
    if example is not None:
        wanted.append(draw.just(str(example)))
    if "enum" in schema:
        wanted.append(draw.sampled_from(schema["enum"]))
    if schema.get("type") == "integer":
        low, high = schema.get("minimum", 0), schema.get("maximum", 2**64)
        wanted.append(draw.integers(low - 1, high + 1).map(str))
    return draw.one_of(wanted)


@draw.composite
def requests(draw_one) -> tuple[str, str, str, dict[str, str]]:
    """The path of the document, the method, the target, and the header."""
    path = draw_one(draw.sampled_from(sorted(OPENAPI["paths"])))
    name = draw_one(draw.one_of(draw.just(socket.gethostname()), TEXT.filter(bool)))
    target = path.format(name=urllib.parse.quote(name, safe=""))
    query = []
    for each in OPENAPI["paths"][path]["get"].get("parameters", []):
        if each["in"] == "query" and draw_one(draw.integers(0, 4)) > 0:
            query.append((each["name"], draw_one(value_of(each["schema"], each.get("example")))))
    if draw_one(draw.integers(0, 9)) == 0:
        query.append((draw_one(TEXT), draw_one(TEXT)))
    if draw_one(draw.integers(0, 9)) == 0 and query:
        query.append(query[0])
    if query:
        target += "?" + urllib.parse.urlencode(query)
    header = {}
    for key, values in (
        ("Accept-Encoding", ["gzip"]),
        ("If-None-Match", ["*", '"odd"']),
        ("Authorization", [f"Bearer {TOKEN}", f"bearer {TOKEN}", "Bearer wrong", "Basic x"]),
        ("Host", ["localhost", "evil.example"]),
    ):
        if draw_one(draw.integers(0, 2)) == 0:
            header[key] = draw_one(draw.sampled_from(values))
    return path, draw_one(draw.sampled_from(["GET", "GET", "GET", "HEAD"])), target, header


def ask(server: Agent, method: str, target: str, header: dict[str, str]):
    """Status, header and bytes; of a stream that goes on, none."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=DEADLINE_S)
    with contextlib.closing(connection):
        connection.request(method, target, headers=header)
        answer = connection.getresponse()
        goes_on = answer.status == 200 and answer.headers["Content-Type"] == "text/event-stream"
        return answer.status, answer.headers, b"" if goes_on else answer.read()


@BOUNDED
@hypothesis.given(asked=requests())
def test_each_answer_is_one_that_the_document_describes(server, asked):
    path, method, target, header = asked
    status, answer, text = ask(server, method, target, header)
    described = described_answer(path, status)
    assert described is not None, f"{status} of {path} is not in the document"
    kinds = described.get("content", {})
    if text or kinds and method == "GET":
        assert answer["Content-Type"].partition(";")[0] in kinds
    if text and answer["Content-Encoding"] is None and "application/json" in kinds:
        check_described(described, json.loads(text))
    if method == "HEAD" or status == 304:
        assert text == b""


@BOUNDED
@hypothesis.given(
    method=draw.sampled_from(["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"]),
    path=draw.sampled_from(sorted(OPENAPI["paths"])),
)
def test_nothing_can_be_changed(server, method, path):
    status, answer, _ = ask(server, method, path, {})
    assert (status, answer["Allow"]) == (405, "GET, HEAD")
