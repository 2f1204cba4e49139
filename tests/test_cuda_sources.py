"""The CUDA sources compile for every kind of card there is, without a card."""

from pathlib import Path

import nvrtc
import pytest

from vnlem.kernels.cuda import engine
from vnlem.pipeline import units_on_gpu

MATCH = {"P": 7, "CHANNELS": 1, "LAYERS": 1, "TRANSFORMS": 8, "THREADS": 256, "WINDOW_IN_SHARED": 1} | {
    "CELLS": 0,
    "COPIES": 0,
}
PLANES = MATCH | {"LAYERS": 2}
RID = {"TILE": 4, "HALF": 64, "BLOCKS": 3, "WARPS": 9, "TOGETHER": 2, "CHUNK": 8, "BLOCKS_OF_SM": 3} | {
    "WITH_MARGIN": 0,
    "WITH_IDENTITY": 0,
    "DIFFUSION": 0,
    "GRAPH": 0,
}
REGRESS = {"HALF": 64, "CHANNELS": 1, "WARPS": 4, "ROWS": 4, "COLUMNS": 8, "UNTURNED": 0}
MODULES = {
    "match": ("match", MATCH),
    "match colour, copies": ("match", MATCH | {"P": 8, "CHANNELS": 3, "LAYERS": 3, "COPIES": 1}),
    "match shifts, large window": ("match", MATCH | {"TRANSFORMS": 1, "WINDOW_IN_SHARED": 0}),
    "match of cells": ("match", MATCH | {"CELLS": 1}),
    "planes match": ("match", PLANES),
    "planes match in colour": ("match", PLANES | {"P": 8, "CHANNELS": 3, "LAYERS": 3}),
    "planes match under reflections of depth": (
        "match",
        PLANES | {"P": 5, "LAYERS": 4, "TRANSFORMS": 16},
    ),
    "planes match shifts, large window": ("match", PLANES | {"TRANSFORMS": 1, "WINDOW_IN_SHARED": 0}),
    "planes": ("planes", {}),
    "motion": ("motion", {"CELL": 8, "HALF": 8, "LONGEST": 12, "THREADS": 256}),
    "alike": ("alike", {"FEATURES": 8, "THREADS": 128, "TILE": 128}),
    "filters": ("filters", {}),
    "change": ("change", {}),
    "scales": ("scales", {}),
    "middle": ("middle", {"MOST": 17}),
    "patches": ("patches", {}),
    "turn": ("turn", {"TAPS": 12}),
    "ridge first pass": ("ridge", {"P": 6, "DEPTH": 1, "K": 20, "THREADS": 32}),
    "ridge": ("ridge", {"P": 8, "DEPTH": 1, "K": 80, "THREADS": 416}),
    "ridge of a stack": ("ridge", {"P": 5, "DEPTH": 4, "K": 64, "THREADS": 256}),
    "orientation": ("orientation", {"THREADS": 128}),
    "rings": ("rings", {"ORDERS": 15}),
    "rid paper": ("rid", RID),
    "rid auto": ("rid", RID | {"TILE": 2, "HALF": 48, "WITH_MARGIN": 1, "WITH_IDENTITY": 1, "DIFFUSION": 1}),
    "rid of a graph": ("rid", RID | {"WITH_MARGIN": 1, "GRAPH": 1}),
    "stencil": ("stencil", {}),
    "surround": ("surround", {"UPSAMPLE": 2, "TAPS": 8}),
    "regress paper": ("regress", REGRESS | {"GROUPS": 7}),
    "regress as they are": ("regress", REGRESS | {"GROUPS": 4, "CHANNELS": 3, "UNTURNED": 1}),
    "aligned": ("aligned", {"HALF": 64, "CHANNELS": 1, "MEAN": 0, "THREADS": 128}),
    "aligned auto": ("aligned", {"HALF": 48, "CHANNELS": 3, "MEAN": 1, "THREADS": 64}),
    "nlem paper": ("nlem", {"SIZE_Y": 13, "SIZE_X": 13, "CHANNELS": 1, "WARPS": 8, "MEDIAN": 1}),
    "nlpr of a colour signal": ("nlem", {"SIZE_Y": 1, "SIZE_X": 5, "CHANNELS": 3, "WARPS": 4, "MEDIAN": 0}),
    "nlm": ("nlm", {"RX": 3, "RY": 3, "CHANNELS": 1, "ROWS": 8, "WARPS": 2, "PARTS": 3}),
    "nlm over planes": ("nlm", {"RX": 2, "RY": 2, "CHANNELS": 1, "ROWS": 8, "WARPS": 8, "PARTS": 1}),
    "nlm of a colour signal": ("nlm", {"RX": 2, "RY": 0, "CHANNELS": 3, "ROWS": 1, "WARPS": 1, "PARTS": 1}),
}

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        nvrtc.library() is None, reason="NVRTC is not installed: pip install nvidia-cuda-nvrtc"
    ),
]


def test_every_file_of_kernels_is_compiled_here():
    files = {path.stem for path in Path(engine.__file__).parent.glob("*.cu")}
    assert files == {name for name, _ in MODULES.values()}, "add the new file to MODULES"


# Every module for a new card, and the first of every file for an old one.
FIRST = list({name: module for module, (name, _) in reversed(MODULES.items())}.values())
CARDS = [(module, "sm_90") for module in MODULES] + [(module, "sm_75") for module in FIRST]


@pytest.mark.parametrize(("module", "architecture"), CARDS)
def test_kernels_compile_without_a_warning(module, architecture):
    name, macros = MODULES[module]
    source = engine.DYNAMIC_SHARED + engine.source_of(name)
    assert nvrtc.compile_source(source, engine.options_of(macros), architecture).strip("\0\n ") == ""


@pytest.mark.parametrize("architecture", ["sm_75", "sm_90"])
def test_statistics_compile_without_a_warning(architecture):
    source, options = units_on_gpu._SOURCE, units_on_gpu.OPTIONS
    assert nvrtc.compile_source(source, options, architecture).strip("\0\n ") == ""


def test_a_broken_kernel_does_not_compile():
    with pytest.raises(RuntimeError, match="undefined"):
        nvrtc.compile_source(
            engine.source_of("nlm").replace("sum_across(running)", "undefined(running)"),
            engine.options_of(MODULES["nlm"][1]),
        )
