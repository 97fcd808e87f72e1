"""What the experience store must hold to on every database."""

from dataclasses import replace
from datetime import timedelta, timezone

import pytest
from alembic import command
from alembic.config import Config

from policies.errors import ExperienceInvalid
from policies.experience.connection import MIGRATIONS
from policies.experience.record import Experience
from policies.experience.store import ExperienceStore
from tests.unit.policies.experience.records import START, record, thumb

DAY = START, START + timedelta(days=1)


class ExperienceStoreContract:
    """Inherit, and give a fixture `url` of an empty database."""

    @pytest.fixture
    def store(self, url):
        store = ExperienceStore(url)
        yield store
        store.close()

    def test_gives_back_what_was_written(self, store):
        store.write_batch([record()], [thumb()])
        assert Experience(record(), (thumb(),)) == store.get("r1")

    def test_a_request_never_written_is_none(self, store):
        assert store.get("r1") is None

    def test_a_signal_may_come_before_its_request(self, store):
        store.write_batch([], [thumb()])
        assert store.get("r1") is None
        store.write_batch([record()])
        assert (thumb(),) == store.get("r1").signals

    def test_signals_are_oldest_first(self, store):
        late, early = thumb("a", minutes=9), thumb("b", minutes=2)
        store.write_batch([record()], [late, early])
        assert (early, late) == store.get("r1").signals

    def test_writing_again_changes_nothing(self, store):
        store.write_batch([record()], [thumb()])
        store.write_batch([record(status="late copy"), record("r2")], [thumb(value=0.0)])
        assert store.count() == (2, 1)
        assert Experience(record(), (thumb(),)) == store.get("r1")

    def test_a_signal_id_may_come_again_for_another_request(self, store):
        store.write_batch([record("a"), record("b")], [thumb("one", "a", value=1.0)])
        store.write_batch([], [thumb("one", "b", value=0.0), thumb("one", "a", value=0.5)])
        assert (thumb("one", "a", value=1.0),) == store.get("a").signals
        assert (thumb("one", "b", value=0.0),) == store.get("b").signals

    def test_signals_of_an_older_release_are_kept_by_the_upgrade(self, url):
        store = ExperienceStore(url)
        store.write_batch([record("a"), record("b")], [thumb("one", "a")])
        with store._engine.connect() as connection, connection.begin():
            config = Config()
            config.set_main_option("script_location", str(MIGRATIONS))
            config.attributes["connection"] = connection
            command.downgrade(config, "0001")
        store.close()
        upgraded = ExperienceStore(url)
        upgraded.write_batch([], [thumb("one", "b")])
        assert (thumb("one", "a"),) == upgraded.get("a").signals
        assert (thumb("one", "b"),) == upgraded.get("b").signals
        upgraded.close()

    def test_the_same_id_twice_in_one_batch_is_one_row(self, store):
        store.write_batch([record(), record()], [thumb(), thumb()])
        assert store.count() == (1, 1)

    def test_a_batch_with_a_bad_record_stores_nothing(self, store):
        bad = replace(record("bad"), at=START.replace(tzinfo=None))
        with pytest.raises(ExperienceInvalid):
            store.write_batch([record(), bad], [thumb()])
        assert store.count() == (0, 0)

    def test_iterates_a_window_oldest_first_across_pages(self, store):
        written = [record(f"r{i}", minutes=i // 2) for i in range(9)]
        store.write_batch(written[::-1], [thumb(request_id="r4")])
        window = START + timedelta(minutes=1), START + timedelta(minutes=4)
        found = list(store.iterate(*window, page=2))
        assert [f"r{i}" for i in range(2, 8)] == [e.record.request_id for e in found]
        assert [(e.record.request_id, len(e.signals)) for e in found if e.signals] == [("r4", 1)]

    def test_iterates_the_same_window_newest_first(self, store):
        store.write_batch([record(f"r{i}", minutes=i // 2) for i in range(9)])
        window = START + timedelta(minutes=1), START + timedelta(minutes=4)
        found = list(store.iterate(*window, page=2, newest_first=True))
        assert [f"r{i}" for i in range(7, 1, -1)] == [e.record.request_id for e in found]

    def test_iterates_one_collection(self, store):
        store.write_batch([record("a", collection="one"), record("b", collection="two")])
        found = store.iterate(*DAY, collection="two")
        assert [e.record.request_id for e in found] == ["b"]

    def test_times_keep_their_instant(self, store):
        shanghai = START.astimezone(timezone(timedelta(hours=8)))
        store.write_batch([record(at=shanghai)])
        assert store.get("r1").record.at == START

    def test_without_text_nothing_quotes_the_query(self, url):
        store = ExperienceStore(url, keep_text=False)
        call = {"skill": "keyword", "ms": 3.5, "group": "民法典", "explanation": {"year": 2023}}
        stage = {"calls": [call], "filters": {"all_of": [{"field": "year", "gte": 2023}]}}
        store.write_batch([record(execution={"stages": [stage]})], [thumb(detail="民法典")])
        kept = store.get("r1").record
        assert "民法典" not in repr(store.get("r1"))
        store.close()
        assert kept.query is None
        assert ("keyword", 3.5) == (
            kept.execution["stages"][0]["calls"][0]["skill"],
            kept.execution["stages"][0]["calls"][0]["ms"],
        )
        assert "2023" not in repr(replace(kept, at=None))
        assert (
            len(kept.features.dates),
            len(kept.features.entities),
            kept.features.num_chars,
        ) == (1, 1, 24)
        assert record().query_digest == kept.query_digest

    def test_awkward_text_survives(self, store):
        awkward = "a\\u0000b \x00 \U0001f600 'quote' \" % ؟"
        store.write_batch([record(query="x", execution={"note": awkward, "nan": float("nan")})])
        assert store.get("r1").record.execution == {
            "note": awkward.replace("\x00", "\ufffd"),
            "nan": None,
        }

    def test_forgets_a_user(self, store):
        store.write_batch(
            [record("a", user_digest="u1"), record("b", user_digest="u2")],
            [thumb(user_digest="u1", request_id="b")],
        )
        assert store.forget_user("u1") == 2
        assert store.forget_user("") == 0
        assert store.count() == (1, 0)

    def test_opening_again_keeps_everything(self, store, url):
        store.write_batch([record()])
        again = ExperienceStore(url)
        assert again.get("r1") == Experience(record(), ())
        again.close()
