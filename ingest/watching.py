"""When a run is due: now, whenever local sources have changed and settled, and every so often."""

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field
from watchfiles import Change, watch

from ingest.reading import path_of
from ingest.request import IngestRequest

_LONGEST_WAIT_S = 60.0
"""Sources that never settle are looked at all the same."""


class WatchSettings(BaseModel):
    """How patient a watch is."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    settle_s: float = Field(default=2.0, ge=0.05)
    """Changes are taken when nothing has changed for so long."""
    every_s: float = Field(default=300.0, gt=0)
    """Web pages, databases and objects cannot be watched: they are looked at this often; so are
    local files, for file systems that do not tell of changes."""


def due(
    request: IngestRequest, settings: WatchSettings, stop: threading.Event
) -> Iterator[frozenset[str]]:
    """Yield when a run is due, until `stop` is set: the paths that changed, empty when it is time.

    Changes that come while the caller works are yielded afterwards. Hidden files, which are no
    documents, and what lies under the home of the stores do not count.
    """
    paths = [path for source in request.sources if (path := _local(source)) is not None]
    yield frozenset()
    if not paths:
        while not stop.wait(settings.every_s):
            yield frozenset()
        return
    # Editors write a file by putting another one in its place: its folder is what can be watched.
    for changes in watch(
        *{path if path.is_dir() else path.parent for path in paths},
        watch_filter=_filter(paths, request.resources.home.resolve()),
        debounce=int(_LONGEST_WAIT_S * 1000),
        step=int(settings.settle_s * 1000),
        rust_timeout=int(settings.every_s * 1000),
        yield_on_timeout=True,
        stop_event=stop,
    ):
        yield frozenset(path for _, path in changes)


def _local(source: str) -> Path | None:
    scheme = urlsplit(source).scheme
    if scheme == "file":
        return path_of(source).resolve()
    return None if scheme else Path(source).resolve()


def _filter(roots: list[Path], home: Path) -> Callable[[Change, str], bool]:
    def counts(_: Change, changed: str) -> bool:
        path = Path(changed)
        if path.is_relative_to(home):
            return False
        below = [path.relative_to(root) for root in roots if path.is_relative_to(root)]
        return any(not any(p.startswith(".") for p in each.parts) for each in below)

    return counts
