"""Which service runs on a home, for whoever looks from outside.

A service holds a lock (`flock`) for as long as its process lives. One that was killed, or that a
reboot ended, is so told from one that runs, whatever became of its process id. The lock's file
says which process holds it, the state file what the service is once it is ready.
"""

import fcntl
import os
from pathlib import Path
from typing import Self

import orjson
from pydantic import BaseModel, ConfigDict

from serve_app.errors import ServiceUnavailable
from skills.lock_file import is_held


class RunningService(BaseModel):
    """What the state file says of a service that was started on this machine."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    pid: int
    url: str
    log: str = ""


def running_service(home: Path) -> RunningService | None:
    """The service that is ready on this home, if any."""
    if not is_claimed(home):
        return None
    try:
        return RunningService.model_validate_json(_state_file(home).read_bytes())
    except (FileNotFoundError, ValueError):
        return None


def is_claimed(home: Path) -> bool:
    """Whether a living process serves this home, or is about to."""
    return is_held(_lock_file(home))


def claimant(home: Path) -> int | None:
    """Id of the living process that serves this home, or is about to; None without one."""
    if not is_claimed(home):
        return None
    try:
        return int(_lock_file(home).read_bytes())
    except ValueError:  # it has taken the lock this very moment
        return None


class HomeClaim:
    """The right of one process to serve a home; it ends with `release` or with the process."""

    def __init__(self, home: Path, descriptor: int) -> None:
        self._home = home
        self._descriptor = descriptor

    @classmethod
    def take(cls, home: Path) -> Self:
        """Be the one service of this home.

        Raises:
            ServiceUnavailable: another service runs or starts there.
        """
        lock = _lock_file(home)
        lock.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(descriptor)
            running = running_service(home)
            if running is None:
                detail = "a service is being started there; `tactician down` stops it"
                raise ServiceUnavailable(str(home), detail) from error
            detail = f"a service runs already (process {running.pid}); `tactician down` stops it"
            raise ServiceUnavailable(running.url, detail) from error
        os.ftruncate(descriptor, 0)
        os.write(descriptor, str(os.getpid()).encode())
        _state_file(home).unlink(missing_ok=True)  # of a process that was killed
        return cls(home, descriptor)

    def write_down(self, url: str, log: str) -> None:
        """Let others know that the service is ready, and where."""
        state = RunningService(pid=os.getpid(), url=url, log=log)
        partial = _state_file(self._home).with_suffix(".partial")
        partial.write_bytes(orjson.dumps(state.model_dump()))
        partial.replace(_state_file(self._home))

    def release(self) -> None:
        """Leave the home to another service."""
        _state_file(self._home).unlink(missing_ok=True)
        os.ftruncate(self._descriptor, 0)
        os.close(self._descriptor)


def _state_file(home: Path) -> Path:
    return home / "run" / "service.json"


def _lock_file(home: Path) -> Path:
    return home / "run" / ".service"
