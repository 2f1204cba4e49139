"""One run at a time on a file of results: a lock that ends with the process, however it ends."""

import os
import sys

_FAR_AWAY = 1 << 30  # where Windows locks a byte: the content can still be read


def lock(descriptor: int) -> bool:
    """Lock an open file for this process; False if another has it."""
    try:
        if sys.platform == "win32":
            import msvcrt

            os.lseek(descriptor, _FAR_AWAY, os.SEEK_SET)
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
