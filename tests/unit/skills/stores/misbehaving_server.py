"""A server that answers every request alike: with an error, or too late."""

import contextlib
import http.server
import threading
import time


class _Answers(http.server.BaseHTTPRequestHandler):
    """Answers every request with one status, after a while."""

    status = 200
    wait_s = 0.0

    def answer(self):
        time.sleep(self.wait_s)
        body = b'{"status": {"error": "as the test wants it"}, "time": 0.0}'
        with contextlib.suppress(BrokenPipeError):
            self.send_response(self.status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    do_GET = do_POST = do_PUT = do_HEAD = answer  # noqa: N815 - the names http.server calls

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def misbehaving_server(**behaviour):
    handler = type("Answers", (_Answers,), behaviour)
    serving = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=serving.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{serving.server_port}"
    finally:
        serving.shutdown()
        thread.join()
        serving.server_close()
