"""On a cluster that `RAY_ADDRESS` names, `tactician down` takes its application with it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from serve_app.service import free_port

pytestmark = [pytest.mark.serve, pytest.mark.slow]

ROOT = Path(__file__).parents[2]
CLUSTER = """
import ray
from ray import serve
address = ray.init(num_cpus=8, include_dashboard=False, object_store_memory=80_000_000).address_info
print("address", address["gcs_address"], flush=True)
while input() != "end":
    print("applications", *serve.status().applications, flush=True)
"""


def said(process, word):
    for line in process.stdout:
        if line.startswith(word):
            return line.split()[1:]
    raise AssertionError(f"never said {word}")


@pytest.fixture(scope="module")
def environment():
    keep = {k: v for k, v in os.environ.items() if not k.startswith(("RAY_", "OTEL", "TACTICIAN"))}
    off = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_AUTH_MODE": "disabled"}
    return keep | off | {"PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}


@pytest.fixture(scope="module")
def cluster(environment):
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    process = subprocess.Popen([sys.executable, "-c", CLUSTER], env=environment, **pipes)
    yield process
    process.communicate("end\n", timeout=60)


def test_down_deletes_the_application(cluster, environment, tmp_path):
    scaling = {"placement": "inline"}
    parts = dict.fromkeys(("analyzer", "orchestrator", "generator", "recorder"), scaling)
    config = {
        "http": {"port": free_port(), "haproxy": False},
        "parts": parts,
        "inline_skills": True,
        "skills": ["keyword"],
        "encoders": {"default": {"class_path": "skills.encoders.hashing.HashingEncoder"}},
    }
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(config))
    options = ["--config", str(tmp_path / "config.yaml"), "--home", str(tmp_path / "home")]
    borrowed = environment | {"RAY_ADDRESS": said(cluster, "address")[0]}

    def typed(*words):
        command = [sys.executable, "-m", "serve_app.cli", *options, *words]
        subprocess.run(command, env=borrowed, check=True, cwd=tmp_path, timeout=200)

    def applications():
        cluster.stdin.write("look\n")
        cluster.stdin.flush()
        return said(cluster, "applications")

    typed("up", "--detach")
    assert ["tactician"] == applications()
    typed("down")
    assert [] == applications()
