import psycopg
import pytest

from policies.errors import StorageUnavailable
from policies.experience.store import ExperienceStore
from tests.contract.experience_store_contract import ExperienceStoreContract
from tests.unit.policies.experience.records import record

pytestmark = pytest.mark.slow


@pytest.fixture
def url(postgres_url):
    return postgres_url


class TestPostgresStore(ExperienceStoreContract):
    pass


def test_several_stores_upgrade_one_new_database(url):
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(6) as pool:
        stores = list(pool.map(ExperienceStore, [url] * 6))
    stores[0].write_batch([record()])
    assert stores[5].count() == (1, 0)
    for store in stores:
        store.close()


def test_survives_a_connection_that_the_server_ended(url):
    store = ExperienceStore(url)
    store.write_batch([record()])
    with psycopg.connect(url, autocommit=True) as other:
        other.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
    store.write_batch([record("r2")])
    assert store.count() == (2, 0)
    store.close()


def test_a_server_that_is_not_there_is_unavailable(tmp_path):
    with pytest.raises(StorageUnavailable, match="cannot be opened"):
        ExperienceStore(f"postgresql://nobody@/none?host={tmp_path}")
