"""Whether a process holds a lock file (`flock`): true for as long as it lives, however it ends."""

import fcntl
import os
from pathlib import Path


def is_held(path: Path) -> bool:
    """Whether somebody holds the exclusive lock of a file; false when there is no file."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    else:
        return False
    finally:
        os.close(descriptor)
