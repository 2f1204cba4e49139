"""A few damaged files of every format; ``python tests/mutated_files.py`` runs hundreds."""

import logging

import pytest
from mutated_files import KINDS, run

from vnlem.io.formats import FORMATS, format_of


@pytest.mark.parametrize("name", KINDS)
def test_damaged_files_are_told_or_read_and_nothing_is_left(name, tmp_path, monkeypatch):
    library = FORMATS[format_of(tmp_path / name)].library
    if library:
        pytest.importorskip(library)
    for name_of_log in ("nibabel.global", "tifffile"):
        monkeypatch.setattr(logging.getLogger(name_of_log), "disabled", True)
    counts = run(name, 25, seed=1)
    assert counts["refused"] > 0
    assert counts["read"] > 0
