"""DNG files of simulated mosaics, as cameras and phones write them."""

import tifffile

NEUTRAL = (500000, 1000000, 1000000, 1000000, 600000, 1000000)
MATRIX = tuple(
    number
    for value in (0.8, -0.2, -0.1, -0.4, 1.2, 0.2, -0.1, 0.2, 0.6)
    for number in (round(value * 10**4), 10**4)
)


def write_dng(path, mosaic, pattern, *, black=64, white=4095, noise=None, more=(), **options):
    """One image with the tags that a converter needs; noise: NoiseProfile, (S, O)."""
    cell = len(pattern)
    tags = [
        (33421, 3, 2, (cell, cell), True),
        (33422, 1, cell**2, bytes("RGB".index(colour) for row in pattern for colour in row), True),
        (50706, 1, 4, bytes((1, 4, 0, 0)), True),
        (50707, 1, 4, bytes((1, 1, 0, 0)), True),
        (50708, 2, 0, "Simulated camera", True),
        (50714, 3, 1, black, True),
        (50717, 4, 1, white, True),
        (50721, 10, 9, MATRIX, True),
        (50728, 5, 3, NEUTRAL, True),
        (50778, 3, 1, 21, True),
        *more,
    ]
    if noise is not None:
        tags.append((51041, 12, 2, noise, True))
    with tifffile.TiffWriter(path) as tif:
        tif.write(mosaic, photometric=32803, metadata=None, software="camera 1.0", extratags=tags, **options)
