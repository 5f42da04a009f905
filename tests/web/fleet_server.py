"""The made-up hub of fleet.py over HTTP, for the page. By itself: fleet_server.py MACHINES PAGE PORT"""

import gzip
import http.server
import pathlib
import sys
import threading
import time
import urllib.parse

from fleet import Fleet, compact

TYPES = {".html": "text/html; charset=utf-8", ".js": "text/javascript", ".css": "text/css"}


class FleetServer:
    """The fleet over HTTP, with the files of the page from the build."""

    def __init__(self, fleet: Fleet, page: pathlib.Path, port: int = 0, token: str = ""):
        self.fleet, self.page, self.token = fleet, page, token
        self.news = threading.Condition()
        self.ended = False
        self.calls = 0
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", port), self._handler())
        self.server.daemon_threads = True
        self.server.handle_error = lambda *_: None  # a client that goes is no error
        self.port = self.server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}/"
        threading.Thread(
            target=self.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
        ).start()

    def look(self) -> None:
        """All machines have news."""
        with self.news:
            self.fleet.tick += 1
            self.news.notify_all()

    def hang_up(self) -> None:
        """Whoever listens to events must ask again."""
        with self.news:
            self.calls += 1
            self.news.notify_all()

    def end(self) -> None:
        with self.news:
            self.ended = True
            self.news.notify_all()
        self.server.shutdown()
        self.server.server_close()

    def _handler(owner):  # noqa: N805
        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_GET(self):
                owner._answer(self)

        return Handler

    def _answer(self, request) -> None:
        url = urllib.parse.urlsplit(request.path)
        query = dict(urllib.parse.parse_qsl(url.query))
        if not url.path.startswith("/api/"):
            file = self.page / (url.path.strip("/") or "index.html")
            if file.is_file():
                send(request, 200, TYPES[file.suffix], file.read_bytes())
            else:
                refuse(request, 404, "no such path")
        elif self.token and request.headers.get("Authorization") != f"Bearer {self.token}":
            refuse(request, 401, "needs the header Authorization: Bearer TOKEN")
        elif url.path == "/api/v1/hosts/changes":
            self._stream(request, int(query.get("since", 0)))
        else:
            self._answer_api(request, url.path.removeprefix("/api/v1/"), query)

    def _answer_api(self, request, path: str, query: dict) -> None:
        if path == "hosts":
            document = self.fleet.hosts()
        elif path == "match" and query["filter"].startswith("name~"):
            try:
                document = self.fleet.match(query["filter"])
            except LookupError:  # as a proxy answers for a server that is away
                return refuse(request, 502, "Bad Gateway")
        elif path == "match":
            return refuse(request, 400, 'expression, column 1: "x" is not a field\n  x\n  ^')
        elif path.endswith("/history"):
            spans = {"1h": 3600, "24h": 86400, "7d": 604_800, "30d": 2_592_000}
            document = self.fleet.history(query["device"], spans[query["since"]])
        elif path.endswith("/timeline"):
            try:
                document = self.fleet.timeline(path.split("/")[1])
            except LookupError:  # as one that does not know the path
                return refuse(request, 404, "no such path")
        elif path == "usage":
            document = self.fleet.usage()
        elif path == "jobs":
            document = None  # it runs without --own-jobs
        else:
            return refuse(request, 404, "no such path")
        send(request, 200, "application/json", compact(document).encode())

    def _stream(self, request, since: int) -> None:
        request.send_response(200)
        request.send_header("Content-Type", "text/event-stream")
        request.send_header("Connection", "close")
        request.end_headers()
        request.close_connection = True
        calls = self.calls
        known: dict[str, dict] = {}
        while not self.ended and self.calls == calls:
            with self.news:
                self.news.wait_for(lambda: self.ended or self.calls != calls or self.fleet.tick + 1 > since)
                text = "" if self.ended else self.fleet.changes(known)
                since = self.fleet.tick + 1
            try:
                request.wfile.write(text.encode())
                request.wfile.flush()
            except OSError:
                return


def send(request, status: int, kind: str, text: bytes) -> None:
    is_packed = "gzip" in request.headers.get("Accept-Encoding", "")
    body = gzip.compress(text, 6) if is_packed else text
    request.send_response(status)
    request.send_header("Content-Type", kind)
    request.send_header("Content-Length", str(len(body)))
    if is_packed:
        request.send_header("Content-Encoding", "gzip")
    request.end_headers()
    request.wfile.write(body)


def refuse(request, status: int, message: str) -> None:
    error = {"kind": "berth-error", "version": 1, "code": "usage", "message": message}
    send(request, status, "application/json", compact(error).encode())


def main() -> None:
    count, page = int(sys.argv[1]), pathlib.Path(sys.argv[2])
    fleet = Fleet(range(count))
    if count > 20:
        fleet.machines[4].down = True
        fleet.machines[11].stale = True
    server = FleetServer(fleet, page, int(sys.argv[3]))
    print(server.url, flush=True)
    while True:
        time.sleep(5)
        server.look()


if __name__ == "__main__":
    main()
