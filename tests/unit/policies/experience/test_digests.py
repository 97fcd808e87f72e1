import stat
from concurrent.futures import ThreadPoolExecutor

import pytest

from policies.errors import StorageUnavailable
from policies.experience.digests import Digester


def test_same_salt_same_digest_other_salt_another():
    one, other = Digester(b"a" * 16), Digester(b"b" * 16)
    assert one.user("ann", "") == Digester(b"a" * 16).user("ann", "")
    assert one.user("ann", "") != other.user("ann", "")


def test_a_user_and_a_session_of_one_name_differ():
    digester = Digester(b"a" * 16)
    assert digester.user("ann", "") != digester.session("ann", "")


def test_nobody_stays_nobody():
    assert Digester(b"a" * 16).user("", "acme") == ""


def test_queries_are_equal_whatever_their_case_width_and_spacing():
    digester = Digester(b"a" * 16)
    assert digester.query("What is  ＮＥＴ sales") == digester.query(" what is net SALES ")
    assert digester.query("what is net sales") != digester.query("what is net sale")


def test_processes_that_open_one_salt_agree(tmp_path):
    path = tmp_path / "new" / "salt"
    with ThreadPoolExecutor(8) as pool:
        digests = set(pool.map(lambda _: Digester.open(path).user("ann", ""), range(32)))
    assert len(digests) == 1
    assert [p.name for p in path.parent.iterdir()] == ["salt"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_damaged_salt_is_refused(tmp_path):
    (tmp_path / "salt").write_bytes(b"short")
    with pytest.raises(StorageUnavailable, match="5 bytes"):
        Digester.open(tmp_path / "salt")


def test_users_of_two_tenants_with_one_name_are_two():
    digester = Digester(b"a" * 16)
    assert digester.user("1", "acme") != digester.user("1", "globex")
    assert digester.session("1", "acme") != digester.session("1", "globex")
