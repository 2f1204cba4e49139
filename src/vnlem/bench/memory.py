"""Peak memory of a piece of work, on systems that report it."""

import sys
from pathlib import Path

_STATUS, _RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")


class PeakMemory:
    """Resident memory at its highest since the object was made, in MiB.

    On Linux the peak is reset first; other systems know only the peak of the whole process, some not even
    that.

    >>> import numpy as np
    >>> peak = PeakMemory()
    >>> _ = np.ones(10**6)
    >>> peak.mebibytes() is None or peak.mebibytes() > 8
    True
    """

    def __init__(self) -> None:
        self._since_here = True
        try:
            _RESET.write_text("5")
        except OSError:
            self._since_here = False

    def mebibytes(self) -> float | None:
        """The peak in MiB; None if it is not known."""
        if self._since_here:
            for line in _STATUS.read_text().splitlines():
                if line.startswith("VmHWM:"):
                    return int(line.split()[1]) / 1024
        try:
            import resource
        except ImportError:
            return None
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak / (1024**2 if sys.platform == "darwin" else 1024)
