"""Sensors whose pixels differ, in parts: pixels are evened out as they are read."""

from typing import Any

from vnlem.large.sources import Source
from vnlem.noise.find import CAMERA
from vnlem.noise.model import NoiseModel
from vnlem.noise.poisson_gaussian import are_maps, with_defaults


def with_sensor(source: Source, params: dict[str, Any]) -> dict[str, Any]:
    """Let a source even out the maps of a sensor, if the parameters of a call have them.

    Returns the parameters with the noise of the evened pixels.

    >>> import numpy as np
    >>> from vnlem.large.sources import open_source
    >>> source = open_source(np.array([[10.0, 20.0], [10.0, 20.0]]))
    >>> params = with_sensor(source, {"gain": np.array([[1.0, 2.0], [1.0, 2.0]])})
    >>> params["noise_model"].kind, source.read(((0, 1), (0, 2))).tolist()
    ('poisson-gaussian', [[15.0, 15.0]])
    """
    model = params.get("noise_model", "auto")
    camera = {name: params.get(name) for name in CAMERA}
    if are_maps(camera) and isinstance(model, str):
        model = NoiseModel.camera(*with_defaults(**camera))
        params = {name: value for name, value in params.items() if name not in CAMERA}
    maps = model.maps if isinstance(model, NoiseModel) else None
    if maps is None or maps.sensor is None or maps.without_sensor is not None:
        return params
    maps.check(*source.shape[-2:])
    source.sensor = maps.sensor
    return params | {"noise_model": model.evened}
