"""The agent and the master, one Flask application: FLASK_APP=nvgpu.webapp flask run

The file that NVGPU_CLUSTER_CFG names, in Python's syntax, sets AGENTS, a list of URLs and 'self'; and if wanted
TOKEN, a secret that all agents and their master have in common, without which nothing is told. A browser is
asked for it as a password, with any user name."""

from __future__ import annotations

import hmac
import html
import os
import re

import berth
from flask import Flask, Response, abort, jsonify, render_template, request

from nvgpu.agent import machine_status
from nvgpu.list_gpus import cells, colour_of
from nvgpu.master import gather_reports, title

app = Flask("nvgpu.webapp")
app.config.update(AGENTS=["self"], TOKEN=None)
if os.environ.get("NVGPU_CLUSTER_CFG"):
    # Flask looks for a relative path beside this module.
    app.config.from_pyfile(os.path.abspath(os.environ["NVGPU_CLUSTER_CFG"]))


class _Api:
    """The part of flask_restful's Api that adds pages to the application."""

    def add_resource(self, resource, *urls: str, endpoint: str | None = None, **options) -> None:
        name = endpoint or resource.__name__.lower()
        view = resource.as_view(name)
        for url in urls:
            app.add_url_rule(url, endpoint=name, view_func=view, **options)


api = _Api()

_AGENTS_OF_START = app.config["AGENTS"]
agents = _AGENTS_OF_START  # the list that the pages ask; a program may set another


def _given_token() -> str:
    if request.authorization is not None and request.authorization.password:
        return request.authorization.password
    return request.headers.get("Authorization", "").replace("Bearer ", "", 1)


@app.before_request
def _admit():
    token = app.config["TOKEN"]
    if token and not hmac.compare_digest(_given_token().encode(), str(token).encode()):
        return Response("A token is needed.\n", 401, {"WWW-Authenticate": 'Basic realm="nvgpu"'})
    return None


def _reports() -> tuple:
    # Whichever of the two a program has changed.
    asked = list(agents if app.config["AGENTS"] is _AGENTS_OF_START else app.config["AGENTS"])
    return asked, gather_reports(asked, app.config["TOKEN"])


def _asks_for_the_original() -> bool:
    """Whether it is the original's master that asks, as far as can be told: it does so by the library requests."""
    return request.headers.get("User-Agent", "").startswith("python-requests/")


_COLOUR = re.compile(r"\033\[(\d*)m")
_HTML_COLOURS = {"31": "#c00", "32": "green", "33": "olive", "34": "blue", "35": "purple", "36": "teal"}


def ansi_text_to_html(text: str) -> str:
    """A page with the text as a terminal would show it. Whatever is markup in it is escaped."""
    body, is_open = "", False
    for at, part in enumerate(_COLOUR.split(text)):
        if at % 2 == 0:
            body += html.escape(part)
            continue
        body += "</span>" if is_open else ""
        is_open = part in _HTML_COLOURS
        body += f'<span style="color: {_HTML_COLOURS[part]}">' if is_open else ""
    return f'<!doctype html>\n<meta charset="utf-8">\n<pre>{body}{"</span>" if is_open else ""}</pre>\n'


@app.get("/gpu_status")
def gpu_status():
    try:
        report = machine_status()
    except berth.Error as error:
        abort(Response(f"{error}\n", 503))
    if _asks_for_the_original():
        # It looks for attributes in `memory`, which no JSON has, and then its whole page fails. Of
        # a report with an error it shows the error; whoever else uses that library finds all the
        # rest.
        report["error"] = (
            "the master is an original nvgpu, which cannot show this agent: replace the master, too"
        )
    return jsonify(report)


@app.get("/cluster_status")
def cluster_status():
    return jsonify(_reports()[1])


@app.get("/")
def page():
    agents, reports = _reports()
    hosts = [
        {
            "title": title(agent, report),
            "error": report.get("error"),
            "rows": [(colour_of(row), cells(index, row)) for index, row in enumerate(report.get("gpus", ()))],
        }
        for agent, report in zip(agents, reports)
    ]
    return render_template("cluster.html", hosts=hosts)


if __name__ == "__main__":
    app.run(port=1080)
