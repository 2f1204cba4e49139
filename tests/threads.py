"""Kernels in several threads at once, for the thread sanitizer: make test-sanitize.

Every method denoises a small image with one worker and with four: the bytes must be the same, and the
sanitizer must find no race.
"""

from concurrent.futures import ThreadPoolExecutor

import numpy as np

import vnlem
from vnlem.kernels.cpu.motion import BlockSearch, block_motion
from vnlem.registry import METHODS

RNG = np.random.default_rng(0)


def motion(_: int) -> bytes:
    """The motion between two frames that all threads read."""
    moves = np.zeros((8, 8, 2), np.int64)
    block_motion(FRAMES[0], FRAMES[1], BlockSearch(8, 3, 0.1), moves)
    return moves.tobytes()


FRAMES = RNG.normal(size=(2, 64, 64)).astype(np.float32)


def main() -> None:
    """Call one kernel from several threads, then all methods with several workers."""
    with ThreadPoolExecutor(4) as pool:
        assert len(set(pool.map(motion, range(16)))) == 1
    image = 100 * (np.add.outer(np.arange(72), np.arange(80)) % 24 > 11) + RNG.normal(0, 20, (72, 80))
    stack = image + RNG.normal(0, 20, (5, 72, 80))
    calls = [(name, image, {"method": name}) for name in METHODS]
    calls += [(f"vnlr of {axes}", stack, {"axes": axes}) for axes in ("TYX", "ZYX", "NYX")]
    calls += [("vnlr in colour", stack[:3], {"channel_axis": 0})]
    for name, pixels, options in calls:
        alone, together = (vnlem.denoise(pixels, 20, workers=workers, **options) for workers in (1, 4))
        assert np.array_equal(alone, together), f"{name} depends on the number of workers"
        print(f"{name}: the same with four workers", flush=True)


if __name__ == "__main__":
    main()
