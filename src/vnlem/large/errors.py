"""Clear errors for failures of units, and whether to continue with the others."""

import errno
from pathlib import Path


class UnitError(ValueError):
    """One unit failed for a reason of its own, such as damaged input; others may go on."""


class StopError(OSError):
    """The whole run must stop, e.g. because the disk is full."""


def explain(error: BaseException, target: Path) -> Exception:
    """The error to show instead of what a library raised.

    >>> explain(OSError(errno.ENOSPC, "No space left on device"), Path("out.zarr"))
    StopError('the disk that holds out.zarr is full; free some space and run again with --resume')
    """
    again = "run again with --resume"
    if isinstance(error, MemoryError):
        return StopError(f"out of memory; {again} and a smaller --memory")
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return StopError(f"the disk that holds {target} is full; free some space and {again}")
    if isinstance(error, OSError) and error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return StopError(f"no permission to write {target}; make it writable and {again}")
    if isinstance(error, OSError) and error.errno is not None:
        return StopError(f"cannot write {target} ({error.strerror}); cure this and {again}")
    if isinstance(error, UnitError | StopError):
        return error
    return UnitError(" ".join(str(error).split()) or type(error).__name__)
