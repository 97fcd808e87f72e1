"""Which service runs on a home: one at a time, and only while its process lives."""

import os
import signal
import socket
import subprocess
import sys
import time

import pytest
from typer.testing import CliRunner

from serve_app.cli.main import app
from serve_app.config import load_config
from serve_app.errors import ServiceUnavailable
from serve_app.running_service import HomeClaim, RunningService, running_service
from serve_app.service import stop_running

URL = "http://127.0.0.1:1"
HOLDER = """
import sys, time
from pathlib import Path
from serve_app.running_service import HomeClaim
claim = HomeClaim.take(Path(sys.argv[1]))
if sys.argv[2] == "ready":
    claim.write_down("http://127.0.0.1:1", "")
print("claimed", flush=True)
time.sleep(60)
"""


@pytest.fixture
def held(tmp_path):
    """Starts a process that serves `tmp_path`, as far as anybody can see."""
    started = []

    def start(state="ready"):
        command = [sys.executable, "-c", HOLDER, str(tmp_path), state]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        started.append(process)
        assert "claimed\n" == process.stdout.readline()
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()
        process.stdout.close()


@pytest.fixture
def config(tmp_path):
    return load_config(environment={}, home=tmp_path, cache=tmp_path)


@pytest.mark.parametrize("command", ["up", "demo", "up --detach"])
def test_a_refused_start_leaves_the_running_service_as_it_is(tmp_path, held, command, monkeypatch):
    monkeypatch.setattr("serve_app.cli.demo.run_ingest", lambda *_: None)
    monkeypatch.setattr("serve_app.cli.demo.show_summary", lambda _: None)
    process = held()
    result = CliRunner().invoke(app, ["--home", str(tmp_path), *command.split()])
    assert "runs already" in str(result.exception) + result.output
    assert RunningService(pid=process.pid, url=URL) == running_service(tmp_path)


def test_down_spares_a_process_that_got_the_id_of_a_service_that_was_killed(tmp_path, held, config):
    bystander = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    killed = held()
    killed.kill()
    killed.wait()
    state = tmp_path / "run" / "service.json"
    state.write_text(RunningService(pid=bystander.pid, url=URL).model_dump_json())
    try:
        assert not stop_running(config)
        time.sleep(0.2)
        assert bystander.poll() is None
        claim = HomeClaim.take(tmp_path)
        assert running_service(tmp_path) is None
        claim.release()
    finally:
        bystander.kill()
        bystander.wait()


def test_down_stops_the_service_and_waits_for_its_end(held, config):
    process = held()
    assert stop_running(config, timeout_s=10)
    assert -signal.SIGTERM == process.wait(timeout=5)
    assert not stop_running(config)


def test_a_service_that_is_being_started_is_neither_ready_nor_absent(tmp_path, held):
    held("starting")
    assert running_service(tmp_path) is None
    with pytest.raises(ServiceUnavailable, match="being started"):
        HomeClaim.take(tmp_path)


def test_down_stops_a_service_that_is_being_started(tmp_path, held, config):
    process = held("starting")
    assert stop_running(config, timeout_s=10)
    assert -signal.SIGTERM == process.wait(timeout=5)
    HomeClaim.take(tmp_path).release()


def test_a_released_home_may_be_claimed_again(tmp_path):
    claim = HomeClaim.take(tmp_path)
    claim.write_down(URL, "log")
    assert RunningService(pid=os.getpid(), url=URL, log="log") == running_service(tmp_path)
    claim.release()
    assert running_service(tmp_path) is None
    HomeClaim.take(tmp_path).release()


def test_a_start_in_the_background_that_fails_says_why_and_not_only_where_its_log_is(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        command = [sys.executable, "-m", "serve_app.cli", "--home", str(tmp_path)]
        run = subprocess.run(
            [*command, "up", "--detach", "--port", port],
            capture_output=True,
            text=True,
            check=False,
        )
    assert 1 == run.returncode
    assert "the port is taken by another program" in " ".join(run.stderr.split())
