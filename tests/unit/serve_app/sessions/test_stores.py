import asyncio
import tempfile
import uuid
from pathlib import Path

import pytest

from serve_app.errors import ServiceUnavailable
from serve_app.sessions.memory import InProcessSessions
from serve_app.sessions.redis import RedisSessions
from serve_app.sessions.types import SessionSettings, Turn
from tests.unit.serve_app.sessions.redis_server import redis_server


def turn(number):
    return Turn(collection="c", subjects=(f"s{number}",), documents=(f"d{number}",))


class SessionStoreContract:
    """What every store of sessions does."""

    async def test_turns_come_back_in_order(self, make):
        store, key = make(), uuid.uuid4().hex
        for number in range(3):
            await store.add(key, turn(number))
        assert [turn(0), turn(1), turn(2)] == list(await store.turns(key))
        assert [] == list(await store.turns(uuid.uuid4().hex))

    async def test_old_turns_are_forgotten(self, make):
        store, key = make(max_turns=2), uuid.uuid4().hex
        for number in range(3):
            await store.add(key, turn(number))
        assert [turn(1), turn(2)] == list(await store.turns(key))

    async def test_a_session_ends_some_time_after_its_last_turn(self, make):
        store, key = make(ttl_s=0.6), uuid.uuid4().hex
        await store.add(key, turn(0))
        await asyncio.sleep(0.35)
        await store.add(key, turn(1))
        await asyncio.sleep(0.35)
        assert 2 == len(await store.turns(key))
        await asyncio.sleep(0.8)
        assert [] == list(await store.turns(key))


class TestInProcessSessions(SessionStoreContract):
    @pytest.fixture
    def make(self):
        return lambda **settings: InProcessSessions(SessionSettings(**settings))

    async def test_there_are_never_more_sessions_than_allowed(self, make):
        store = make(max_sessions=2)
        for key in "abc":
            await store.add(key, turn(0))
        assert [0, 1, 1] == [len(await store.turns(key)) for key in "abc"]


@pytest.fixture(scope="module")
def server():
    with tempfile.TemporaryDirectory() as folder, redis_server(Path(folder)) as found:
        yield found


class TestRedisSessions(SessionStoreContract):
    @pytest.fixture
    async def make(self, server):
        made = []

        def make(**settings):
            url, _ = server
            # Generous: the machine may be busy, and this is not about being late.
            made.append(RedisSessions(SessionSettings(url=url, timeout_ms=5000, **settings)))
            return made[-1]

        yield make
        for store in made:
            await store.close()

    async def test_gateways_share_sessions_and_lose_no_turn(self, make):
        one, other, key = make(max_turns=50), make(max_turns=50), uuid.uuid4().hex
        await asyncio.gather(*((one, other)[i % 2].add(key, turn(i)) for i in range(20)))
        assert {turn(i) for i in range(20)} == set(await other.turns(key))

    async def test_turns_of_another_release_are_as_good_as_forgotten(self, make):
        store, key = make(), uuid.uuid4().hex
        await store._redis.rpush(f"tactician:session:{key}", b'{"of": "another release"}')
        assert [] == list(await store.turns(key))


async def test_a_server_that_is_not_there_is_said_to_be_unavailable(tmp_path):
    store = RedisSessions(SessionSettings(url=f"unix://{tmp_path}/none.sock"))
    with pytest.raises(ServiceUnavailable):
        await store.turns("k")
    with pytest.raises(ServiceUnavailable):
        await store.add("k", turn(0))
    await store.close()
