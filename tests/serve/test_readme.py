"""What the README tells a stranger to do works as it says."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from typer.main import get_command

from serve_app.cli.main import app
from serve_app.client import TacticianClient
from serve_app.samples import QUESTIONS
from serve_app.service import free_port

pytestmark = [pytest.mark.serve, pytest.mark.slow]

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


def quoted(answer):
    """The sentences of a printed answer, without the list of sources under them."""
    return re.split(r"\n\s*extractive:", answer)[0]


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """`tactician demo`, running, with what it has printed so far."""
    home = tmp_path_factory.mktemp("demo")
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(("RAY_SERVE", "OTEL"))}
    port = free_port()
    environment = inherited | {
        "TACTICIAN_HOME": str(home),
        "PYTHONPATH": str(ROOT),
        "PYTHONUNBUFFERED": "1",
        "COLUMNS": "200",
    }
    command = [sys.executable, "-m", "serve_app.cli", "demo", "--port", str(port)]
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    lines = []
    for line in process.stdout:
        lines.append(line)
        if "serving until Ctrl-C" in line:
            break
    yield process, f"http://127.0.0.1:{port}", "".join(lines), environment
    if process.poll() is None:
        process.terminate()
        process.wait(60)
    process.stdout.close()


@pytest.mark.timeout(400)
def test_the_demo_answers_its_questions_with_citations_plan_and_times(demo):
    _, url, printed, _ = demo
    for question in QUESTIONS:
        assert question in printed
    assert len(QUESTIONS) == printed.count("plan ")
    assert "[1]" in printed
    assert "No answer" not in printed
    fact, how, comparison = (
        part for part in re.split("|".join(map(re.escape, QUESTIONS)), printed)[1:]
    )
    # What a person who reads the sample corpus would accept, question by question.
    assert "3.86 亿元" in quoted(fact)
    assert "eight seconds" in quoted(how)
    compared = quoted(comparison)
    assert ("5.1 kWh" in compared and "10.2 kWh" in compared) or "only the H10" in compared
    assert re.search(r"first answer after \d+ s", printed)
    for page in ("/v1", "/docs", "/console"):
        assert url + page in printed


def test_commands_of_the_readme_exist(demo):
    commands = set(get_command(app).commands)
    shown = re.findall(r"^tactician ([\w-]+)", "".join(blocks("console")), re.MULTILINE)
    assert shown
    assert set(shown) <= commands
    assert all(f"\n{target}" in (ROOT / "Makefile").read_text() for target in ("demo:", "test:"))


def test_the_curl_line_and_the_response_of_the_readme_are_true(demo):
    _, url, _, _ = demo
    line = next(line for line in blocks("console") if line.startswith("curl"))
    line = line.replace("localhost:8000", url.removeprefix("http://"))
    answer = subprocess.run(
        line, shell=True, capture_output=True, text=True, timeout=60, check=True
    )
    body, shown = json.loads(answer.stdout), json.loads(blocks("json")[0])
    assert set(shown) <= set(body)
    assert set(shown["passages"][0]) == set(body["passages"][0])
    assert set(shown["passages"][0]["provenance"][0]) == set(body["passages"][0]["provenance"][0])


def test_the_python_of_the_readme_runs(demo):
    _, url, _, _ = demo
    names = {}
    exec(blocks("python")[0].replace("http://127.0.0.1:8000", url), names)
    assert names["found"]["passages"]


def test_the_command_line_asks_retrieves_and_explains(demo):
    _, url, _, environment = demo

    def tactician(*arguments):
        command = [sys.executable, "-m", "serve_app.cli", "--url", url, *arguments]
        run = subprocess.run(
            command, env=environment, cwd=ROOT, capture_output=True, text=True, timeout=120
        )
        assert 0 == run.returncode, run.stderr
        return run.stdout

    assert "plan" in tactician("ask", QUESTIONS[0], "--collection", "samples")
    printed = tactician(
        "retrieve", "restart", "-c", "samples", "--top-k", "2", "--filter", "language=en"
    )
    request_id = re.search(r"request ([0-9a-f]{32})", printed)[1]
    assert "feature" in tactician("explain", request_id)
    assert "samples" in tactician("collections")
    assert "hybrid_convex" in tactician("plans")
    assert "keyword" in tactician("skills")


def test_ctrl_c_stops_the_demo_cleanly(demo):
    process, url, _, _ = demo
    process.send_signal(2)
    assert 0 == process.wait(60)
    with pytest.raises(Exception, match="cannot be reached"):
        TacticianClient(url).get("/readyz")
