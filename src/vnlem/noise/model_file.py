"""Noise models as plain values and as JSON files, and back."""

import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

from vnlem.noise.correlated import Spectrum, check_spectrum
from vnlem.noise.curve import check_curve
from vnlem.noise.json_values import PARTS
from vnlem.noise.maps import PixelMaps
from vnlem.noise.model import NoiseModel
from vnlem.pipeline import checks

FORMAT = "vnlem noise model 1"


def as_dict(model: NoiseModel) -> dict[str, Any]:
    """See :meth:`NoiseModel.to_dict`."""
    return {
        "format": FORMAT,
        "kind": model.kind,
        "curves": [
            {
                "levels": list(c.levels),
                "variances": list(c.variances),
                "camera": None if c.camera is None else asdict(c.camera),
                **({} if c.law is None else {"law": c.law.to_dict()}),
            }
            for c in model.curves
        ],
        "spectra": [None if s.is_white else [list(row) for row in s.power] for s in model.spectra],
        "strengths": list(model.strengths),
        "confidence": model.confidence,
        "doubt": model.doubt,
        **({} if model.maps is None else {"maps": model.maps.to_dict()}),
    }


def from_dict(values: Any) -> NoiseModel:
    """See :meth:`NoiseModel.from_dict`."""
    if not isinstance(values, dict) or values.get("format") != FORMAT:
        raise ValueError(
            f"this is not a noise model: its format must be {FORMAT!r}; make one with vnlem noise"
        )
    missing = [name for name in ("curves", "spectra", "strengths", "confidence") if name not in values]
    if missing:
        raise ValueError(f"the noise model lacks {missing[0]!r}; make it again with vnlem noise")
    for name, wanted in (("curves", "object"), ("spectra", "square table"), ("strengths", "number")):
        if not isinstance(values[name], list) or not all(map(PARTS[name], values[name])):
            raise ValueError(
                f"the noise model is damaged ({name!r} must be a list, one {wanted} per channel; got "
                f"{checks.shown(values[name])}); make it again with vnlem noise"
            )
    maps = values.get("maps")
    try:
        curves = tuple(
            check_curve(c["levels"], c["variances"], c.get("camera"), c.get("law")) for c in values["curves"]
        )
        spectra = tuple(Spectrum.white() if s is None else check_spectrum(s) for s in values["spectra"])
        strengths = tuple(checks.real("strength", s, 0, open_low=True) for s in values["strengths"])
        found = None if maps is None else PixelMaps.from_dict(dict(maps))
    except (KeyError, TypeError) as error:
        raise ValueError(f"the noise model is damaged ({error}); make it again with vnlem noise") from None
    if not (curves and spectra and strengths):
        raise ValueError("the noise model is empty; make it again with vnlem noise")
    confidence = checks.real("confidence", values["confidence"], 0, 1)
    return NoiseModel(curves, spectra, strengths, confidence, str(values.get("doubt", "")), found)


def save(model: NoiseModel, path: str | os.PathLike[str]) -> None:
    """See :meth:`NoiseModel.save`."""
    from vnlem.io.atomic import whole_file

    with whole_file(Path(path)) as temporary:
        temporary.write_text(json.dumps(as_dict(model), indent=1) + "\n", encoding="utf-8")


def load(path: str | os.PathLike[str]) -> NoiseModel:
    """See :meth:`NoiseModel.load`."""
    try:
        values = json.loads(Path(path).read_text(encoding="utf-8"))
    except (UnicodeDecodeError, json.JSONDecodeError):
        raise ValueError(f"{path} is not a noise model: it is not JSON; make one with vnlem noise") from None
    return from_dict(values)
