"""A real HTTP server on the loopback that answers JSON, for skills that call one."""

import contextlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit


class JsonEndpoint:
    """Answers every request with `answer`: a value, bytes as they are, a status, or `hang`."""

    def __init__(self, answer=None):
        self.answer = answer
        self.requests = []
        self._released = threading.Event()
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            def _serve(self):
                length = int(self.headers.get("content-length") or 0)
                body = json.loads(self.rfile.read(length)) if length else None
                parts = urlsplit(self.path)
                asked = {name: values[0] for name, values in parse_qs(parts.query).items()}
                endpoint.requests.append(
                    (self.command, parts.path, asked or body, self.headers.get("authorization"))
                )
                status, content = endpoint.reply()
                self.send_response(status)
                self.send_header("content-length", str(len(content)))
                self.end_headers()
                with contextlib.suppress(ConnectionError):  # the client may have gone
                    self.wfile.write(content)

            def do_GET(self):
                self._serve()

            def do_POST(self):
                self._serve()

            def log_message(self, *_):
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def reply(self):
        if self.answer == "hang":
            self._released.wait(10)
            return 200, b"{}"
        if isinstance(self.answer, int):
            return self.answer, b"no"
        if isinstance(self.answer, bytes):
            return 200, self.answer
        return 200, json.dumps(self.answer).encode()

    def close(self):
        self._released.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
