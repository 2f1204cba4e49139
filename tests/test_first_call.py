"""How many kernels a first call compiles: each one for one set of types, whatever the image.

Kernels only note their calls in a process that rehearses, so nothing is compiled here.
"""

import json
import os
import subprocess
import sys

import pytest

from vnlem.pipeline.first_call import RECORD

# Method -> the kernels of its first call, without those that solve for the eigenvectors of VNLEM-DD.
RINGS = ["gradients", "dominant_directions", "ring_features", "squared_lengths"]
GRAPH = ["half_windows", "local_scales", "gaussian", "degrees", "components"]
KERNELS = {
    "vnlr": ["cut", "match_tile", "filter_tile", "settle"],
    "vnlem": [*RINGS, "denoise_tile"],
    "vnlem-dd": [*RINGS, *GRAPH, "denoise_tile"],
    "nlem": ["nlem_tile"],
    "nlm": ["nlm_tile"],
}
CALLS = """
import json, sys
import numpy as np
import vnlem
from vnlem.kernels.numba import ahead

image = np.random.default_rng(0).normal(0, 0.5, (48, 48)) + (np.arange(48) > 23)
sealed = image.copy()
sealed.setflags(write=False)
images = {
    "first": (image, {}),
    "whole numbers": ((60 * image + 100).clip(0, 255).astype(np.uint8), {"sigma": 30}),
    "single precision, columns first": (np.asfortranarray(image.astype(np.float32)), {}),
    "read-only": (sealed, {}),
    "every other row": (np.tile(image, (2, 1))[::2], {}),
    "colour": (np.stack([image] * 3, -1), {"channel_axis": -1}),
    "larger": (np.tile(image, (3, 2)), {}),
}
notes = {}
for name, (pixels, options) in images.items():
    known = set(ahead._noted)
    vnlem.denoise(pixels, **{"sigma": 0.5, "method": sys.argv[1], "workers": 1} | options)
    notes[name] = [key[0] for key in ahead._noted if key not in known]
print(json.dumps(notes))
"""


@pytest.mark.parametrize("method", KERNELS)
def test_a_first_call_compiles_its_kernels_once_for_all_images(method):
    environment = os.environ | {RECORD: "1"}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", CALLS, method],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    notes = json.loads(done.stdout)
    assert notes.pop("first") == KERNELS[method]
    assert not any(notes.values()), notes
