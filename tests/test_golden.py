"""Golden quality: PSNR of two small scenes for every method and preset, frozen to 0.02 dB.

A change of a result that is meant goes with a change of these numbers:

    python tests/test_golden.py
"""

import numpy as np
import pytest
from skimage import data

import vnlem
from vnlem.bench import phantoms

SIGMA = 20.0
TOLERANCE = 0.02


def camera():
    return data.camera()[180:244, 190:254].astype(float)


def cells():
    clean = phantoms.discs(5, 18, 3, seed=1, size=64)
    return 40 * (clean - clean.min())


def astronaut():
    """In colour."""
    return data.astronaut()[60:124, 190:254].astype(float)


GREY = {"camera": camera, "cells": cells}
COLOUR = {"astronaut": astronaut}

# (method, options) -> PSNR of each scene in decibels.
GOLDEN = {
    ("vnlr", ()): {"camera": 31.363, "cells": 34.847},
    ("vnlr", (("profile", "fast"),)): {"camera": 31.339, "cells": 33.985},
    ("vnlr", (("profile", "quality"),)): {"camera": 31.281, "cells": 35.353},
    ("vnlr", (("group", "identity"),)): {"camera": 31.258, "cells": 32.41},
    ("vnlr", (("group", "c4"),)): {"camera": 31.3, "cells": 34.337},
    ("vnlr", (("aim", "perception"),)): {"camera": 31.294, "cells": 34.91},
    ("vnlr", (("group", "similarity"),)): {"camera": 31.392, "cells": 35.516},
    ("vnlr", (("group", "so2"),)): {"camera": 31.4, "cells": 35.025},
    ("nlm", ()): {"camera": 30.207, "cells": 29.496},
    ("nlem", ()): {"camera": 29.622, "cells": 28.025},
    ("nlem", (("preset", "paper"),)): {"camera": 27.616, "cells": 23.176},
    ("nlpr", ()): {"camera": 29.413, "cells": 27.186},
    ("vnlem", ()): {"camera": 30.511, "cells": 32.089},
    ("vnlem", (("adapt", False),)): {"camera": 30.595, "cells": 31.393},
    ("vnlem", (("preset", "paper"),)): {"camera": 25.076, "cells": 26.262},
    ("vnlem-dd", ()): {"camera": 30.589, "cells": 31.357},
    ("vnlem-dd", (("preset", "paper"),)): {"camera": 25.18, "cells": 25.459},
}

GOLDEN_COLOUR = {
    ("vnlr", ()): {"astronaut": 30.906},
    ("vnlr", (("profile", "fast"),)): {"astronaut": 30.864},
    ("vnlr", (("group", "so2"),)): {"astronaut": 30.91},
    ("nlm", ()): {"astronaut": 28.825},
    ("nlem", ()): {"astronaut": 28.407},
    ("vnlem", ()): {"astronaut": 28.967},
    ("vnlem-dd", ()): {"astronaut": 28.548},
}
ROWS = [
    (*key, scene, value)
    for rows in (GOLDEN, GOLDEN_COLOUR)
    for key, values in rows.items()
    for scene, value in values.items()
]


def psnr(method, options, scene):
    clean = (GREY | COLOUR)[scene]()
    noisy = clean + np.random.default_rng(7).normal(0, SIGMA, clean.shape)
    axis = -1 if scene in COLOUR else None
    result = vnlem.denoise(noisy, SIGMA, method=method, channel_axis=axis, **dict(options))
    return float(10 * np.log10(255**2 / np.mean((result - clean) ** 2)))


@pytest.mark.parametrize(("method", "options", "scene", "golden"), ROWS)
def test_psnr_is_what_it_was(method, options, scene, golden):
    assert psnr(method, options, scene) == pytest.approx(golden, abs=TOLERANCE)


if __name__ == "__main__":
    for rows, scenes in ((GOLDEN, GREY), (GOLDEN_COLOUR, COLOUR)):
        for key in rows:
            print(f"    {key!r}: { ({scene: round(psnr(*key, scene), 3) for scene in scenes})!r},")
