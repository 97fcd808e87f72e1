import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from policies.errors import StorageUnavailable
from policies.experience.store import ExperienceStore
from tests.contract.experience_store_contract import ExperienceStoreContract
from tests.unit.policies.experience import opener
from tests.unit.policies.experience.records import record


@pytest.fixture
def url(tmp_path):
    return f"sqlite:///{tmp_path}/deep/experience.db"


class TestSqliteStore(ExperienceStoreContract):
    pass


@pytest.mark.slow
def test_several_processes_open_a_new_database_at_once(url):
    root = Path(__file__).parents[4]
    processes = [
        subprocess.Popen(
            [sys.executable, opener.__file__, url, f"p{n}", "5"],
            cwd=root,
            env={"PYTHONPATH": str(root)},
        )
        for n in range(6)
    ]
    assert [process.wait(60) for process in processes] == [0] * 6
    store = ExperienceStore(url)
    assert store.count() == (30, 6)
    store.close()


def test_commits_reach_the_disk_in_wal_mode(url):
    store = ExperienceStore(url)
    with store._engine.connect() as connection:
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == 2
    store.close()


def test_a_locked_database_is_unavailable_and_names_no_text(url, tmp_path):
    store = ExperienceStore(url, lock_timeout_s=0.05)
    other = sqlite3.connect(tmp_path / "deep" / "experience.db")
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StorageUnavailable) as caught:
        store.write_batch([record()])
    other.close()
    assert "locked" in str(caught.value)
    assert "民法典" not in str(caught.value)
    store.write_batch([record()])
    store.close()


def test_a_schema_of_a_newer_release_is_refused(url, tmp_path):
    ExperienceStore(url).close()
    with sqlite3.connect(tmp_path / "deep" / "experience.db") as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    connection.close()
    with pytest.raises(StorageUnavailable, match="another release"):
        ExperienceStore(url)


@pytest.mark.parametrize("url", ["nonsense", "sqlite://", "mysql://u@h/d", "oracle:///x"])
def test_a_url_of_another_kind_is_refused(url):
    with pytest.raises(StorageUnavailable):
        ExperienceStore(url)


def test_a_password_is_not_shown():
    with pytest.raises(StorageUnavailable) as caught:
        ExperienceStore("mysql://ann:secret@h/d")
    assert "secret" not in str(caught.value)
