import pytest

import ingest.job
from ingest.documents import DocumentStage
from ingest.parser_process import timed
from ingest.request import IngestRequest
from ingest.run import run
from skills.resources import Component, Resources, ResourceSettings

HERE = "tests.unit.ingest.fakes"


class StageHere:
    """`IsolatedStage` without its process, which takes most of a second to start."""

    def __init__(self, settings, known, limits):
        self._stage = DocumentStage(settings, known)

    def process(self, unit):
        return timed(self._stage, unit)

    def close(self):
        pass


class Bench:
    """A source directory, a store, and runs over them."""

    def __init__(self, tmp_path):
        self.docs = tmp_path / "docs"
        self.docs.mkdir()
        self.resources = Resources(
            ResourceSettings(
                home=tmp_path / "home",
                cache=tmp_path / "cache",
                stores={"default": Component(class_path=f"{HERE}.InMemoryStore")},
                encoders={
                    "default": Component(class_path=f"{HERE}.FakeEncoder"),
                    "tokens": Component(class_path=f"{HERE}.FakeTokenEncoder"),
                    "other": Component(class_path=f"{HERE}.FakeEncoder", init_params={"dim": 4}),
                },
            )
        )

    @property
    def store(self):
        return self.resources.store()

    def write(self, name, content):
        path = self.docs / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    def run(self, *sources, progress=None, **options):
        request = IngestRequest(
            sources=tuple(map(str, sources or [self.docs])),
            collection="c",
            resources=self.resources.settings,
            **{"execution": "inline", **options},
        )
        return run(request, progress, self.resources)

    def passages(self):
        return list(self.store.passages("c").values())

    def texts(self):
        return sorted(p.text for p in self.passages())


@pytest.fixture
def bench(tmp_path, monkeypatch):
    """Parses in this process. The child that parses has its own tests: the isolation, the kill and
    the manifest tests and those of the command line run with it."""
    monkeypatch.setattr(ingest.job, "IsolatedStage", StageHere)
    return Bench(tmp_path)


@pytest.fixture
def isolated_bench(tmp_path):
    """Parses in a child, as it is done outside of tests."""
    return Bench(tmp_path)
