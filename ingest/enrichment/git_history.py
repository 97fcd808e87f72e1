"""Who changed a file last and when, by the git checkout that it lies in."""

import shutil
import subprocess
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

_TIMEOUT_S = 10


@dataclass(frozen=True, slots=True)
class LastCommit:
    """The last commit that touched a file."""

    date: str
    """ISO 8601 with offset."""
    author: str
    repo: str
    """Name of the checkout's directory."""
    path: str
    """Of the file, inside of the checkout."""


def last_commit(path: Path) -> LastCommit | None:
    """The last commit of a file; None outside of a checkout, or where the file is not tracked."""
    root, git = _checkout(path.parent), shutil.which("git")
    if root is None or git is None:
        return None
    inside = path.relative_to(root)
    try:
        shown = subprocess.run(  # noqa: S603
            # `core.fsmonitor` and hooks of a checkout that is only data must not run.
            [git, "-c", "core.fsmonitor=false", "-c", f"safe.directory={root}", "-C", str(root),
             "log", "-1", "--format=%cI%x00%an", "--", str(inside)],
            capture_output=True,
            timeout=_TIMEOUT_S,
            check=True,
        ).stdout.decode("utf-8", "replace")  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return None
    date, _, author = shown.strip().partition("\0")
    return LastCommit(date, author, root.name, inside.as_posix()) if date else None


@lru_cache(maxsize=4096)
def _checkout(directory: Path) -> Path | None:
    for place in (directory, *directory.parents):
        if (place / ".git").exists():
            return place
    return None
