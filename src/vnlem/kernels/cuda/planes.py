"""Sums over patches that span planes of a stack (planes.cu)."""

from typing import Any

from vnlem.kernels.cuda.engine import THREADS, Engine

Array = Any  # of the engine's library


def plane_squares(
    engine: Engine,
    image: Array,
    patch: tuple[int, int],
    size: tuple[int, int],
    into: Array,
    *,
    less: Array | None = None,
    about_mean: Array | None = None,
) -> None:
    """Squared norms of the patches that begin in the first of some planes (depth, channels, rows, stride).

    patch: side, and planes that it spans; size: rows and columns of the plane that hold pixels; less: what is
    subtracted from the image. Written: `into` (rows, stride), and `about_mean`, those about the means of the
    channels.
    """
    _, channels, rows, stride = image.shape
    side, depth = patch
    height, width = size
    engine.launch(
        "planes",
        (height - side + 1, -(-width // THREADS)),
        {
            "image": image,
            "less": less,
            "squares": into,
            "about_mean": about_mean,
            "height": height,
            "width": width,
            "plane_rows": rows,
            "stride": stride,
            "size": side,
            "depth": depth,
            "channels": channels,
        },
        kernel="plane_squares",
    )
