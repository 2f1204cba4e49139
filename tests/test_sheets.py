"""Sheets next to the image: another image in which VNLR finds members of its groups."""

import numpy as np

from vnlem.kernels.cpu.sheets import Images
from vnlem.neighbours.groups import Matching, TileGroups
from vnlem.neighbours.sheets import ImageSheet, Reach
from vnlem.pipeline.regions import Region
from vnlem.pipeline.tiles import Tile


class OtherFrame(ImageSheet):
    """Another image of the same size, in which the same place is searched."""

    put_back, same_noise = False, False

    def __init__(self, reach, tile, images):
        corners = np.minimum([[tile.top, tile.left], [tile.bottom, tile.right]], reach.region.shape)
        super().__init__(reach, Tile(*reach.span(corners[:, 0], 0), *reach.span(corners[:, 1], 1)))
        self._images = images

    def fill(self, images, weights, tall, first):
        super().fill(self._images, weights, tall, first)


class Frames:
    """Other frames of a movie, as sheets."""

    def __init__(self, *frames):
        self._frames = frames

    def reach(self, radius, patch_size):
        return radius

    def sheets(self, reach, tile, least_variance):
        return [OtherFrame(reach, tile, frame) for frame in self._frames]


def test_another_frame_of_a_movie_can_be_a_sheet():
    rng = np.random.default_rng(0)
    frames = rng.standard_normal((2, 1, 40, 44)).astype(np.float32)
    # The other frame shows the same, two rows below and three columns to the left.
    frames[1, 0, 12:24, 9:21] = frames[0, 0, 10:22, 12:24] + 0.01
    image, other = (Images(frame, frame, frame, np.full((1, 1, 1), 0.1, np.float32)) for frame in frames)
    reach = Reach(5, 6, Region.whole(40, 44))
    matching = Matching(reach, "identity", 4, np.ones(1, np.float32), 1.3, 0.04, copies=(Frames(other),))
    everything = Tile(0, 40, 0, 44)
    references = np.array([[13, 15]])
    layout = matching.layout(TileGroups(everything, references, everything))
    members = matching.match(references, layout, layout.tall(image, matching.weights))
    corners = [tuple(map(int, divmod(at, layout.stride))) for at in members.positions[0]]
    assert corners[0] == (13, 15)
    assert (40 + 15, 12) in corners
