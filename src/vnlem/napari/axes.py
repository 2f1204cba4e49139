"""What the dimensions of a layer mean: T time, Z depth, C channels, N several images, Y and X."""

from collections.abc import Sequence

# Names of dimensions as files and other plugins write them.
_LETTER_OF_NAME = {
    "t": "T",
    "time": "T",
    "frame": "T",
    "z": "Z",
    "depth": "Z",
    "plane": "Z",
    "slice": "Z",
    "c": "C",
    "channel": "C",
    "channels": "C",
    "s": "C",
    "n": "N",
    "i": "N",
    "image": "N",
    "y": "Y",
    "x": "X",
}
# A first dimension of at most this length is assumed to be channels if there is a depth too.
MOST_CHANNELS = 5


def guess_axes(shape: Sequence[int], *, rgb: bool = False, labels: Sequence[str] = ()) -> str:
    """The likely meaning of each dimension, from the names a layer gives them, else from their number.

    shape: shape of the layer's array, colours included.
    rgb: whether the last dimension holds colours.
    labels: names of the dimensions without the colours; ignored unless all are known and different.

    Returns one letter per dimension.

    >>> guess_axes((512, 512, 3), rgb=True)
    'YXC'
    >>> guess_axes((3, 20, 512, 512))
    'CZYX'
    >>> guess_axes((20, 512, 512), labels=("z", "y", "x"))
    'ZYX'
    """
    count = len(shape) - (1 if rgb else 0)
    named = [_LETTER_OF_NAME.get(str(label).strip().lower(), "") for label in labels]
    if len(named) == count and all(named) and len(set(named)) == count and {"Y", "X"} <= set(named):
        return "".join(named) + ("C" if rgb else "")
    if rgb:
        return {2: "YX", 3: "TYX", 4: "TZYX"}.get(count, "NTZYX"[-count:]) + "C"
    if count == 4 and shape[0] <= MOST_CHANNELS:
        return "CZYX"
    return {2: "YX", 3: "TYX", 4: "TZYX"}.get(count, "NTCZYX"[-count:])
