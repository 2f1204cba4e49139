"""What a solver gets (Job), and what a call reports (Info)."""

from dataclasses import dataclass, field
from html import escape
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from vnlem.pipeline.progress import ProgressCallback
from vnlem.pipeline.regions import Region

Result = NDArray[Any] | tuple[NDArray[Any], "Info"]  # the image, or with return_info=True the image and Info
Params = TypeVar("Params")

# Noise below this share of the clean image's standard deviation is not removed: rounding in the kernels'
# single precision is no smaller.
NEGLIGIBLE = 1e-6


@dataclass(frozen=True)
class Info:
    """What a call used and found: returned as second value with ``return_info=True``.

    Attributes
    ----------
    method : str
    sigma : float
        Standard deviation of the noise in the units of the image, given or estimated.
    parameters : dict
        All parameters of the method, in the units it works in.
    timings : dict
        Seconds spent on each step; "total" is the sum.
    details : dict
        Further reports of a method, and for stacks the noise and the order of the pages.
    device : str
        Where it ran: "cpu", "cuda:0", ...
    noise : NoiseModel or None
        The model that was used; None if a method was called with sigma.
    plan : Plan or None
        All decisions before the work: rounds, sizes, groups of channels with their units and parameters. None
        for stacks.
    noise_check : NoiseCheck or None
        Whether simulated noise of that model, added to the result, looks like the image: its `verdict` is
        "yes", "mostly", "no" or "unknown", its `reason` says why, `describe()` says both. For a stack it
        judges the middle page of each channel and reports the worst. See
        :func:`vnlem.noise.predictive_check`.

    Examples
    --------
    >>> import numpy as np
    >>> import vnlem
    >>> noisy = np.arange(32) + np.random.default_rng(0).normal(100, 5, (32, 32))
    >>> _, info = vnlem.denoise(noisy, 5.0, method="nlm", return_info=True)
    >>> info.method, info.sigma, info.device, info.parameters["patch_size"]
    ('nlm', 5.0, 'cpu', 5)
    """

    method: str
    sigma: float
    parameters: dict[str, Any]
    timings: dict[str, float]
    details: dict[str, Any] = field(default_factory=dict)
    device: str = "cpu"
    noise: Any = None
    plan: Any = None
    noise_check: Any = None

    def _repr_html_(self) -> str:
        rows = {
            "method": self.method,
            "noise": f"sigma {self.sigma:.4g}" if self.noise is None else self.noise.describe(),
            "check": "" if self.noise_check is None else self.noise_check.describe(),
            "device": self.device,
            "seconds": f"{self.timings['total']:.2f}" if "total" in self.timings else "",
        }
        parameters = _table({name: f"{value}" for name, value in self.parameters.items()})
        return f"{_table(rows)}<details><summary>parameters</summary>{parameters}</details>"


def _table(rows: dict[str, str]) -> str:
    left = 'style="text-align:left"'
    cells = (
        f"<tr><th {left}>{escape(name)}</th><td {left}>{escape(text)}</td></tr>"
        for name, text in rows.items()
        if text
    )
    return f"<table>{''.join(cells)}</table>"


@dataclass
class Job(Generic[Params]):
    """The standardised problem a solver gets."""

    pixels: NDArray[np.float32]  # (channels, height, width), mean 0, clean standard deviation about 1
    sigma: float  # noise standard deviation in the units of `pixels`
    params: Params
    workers: int
    progress: ProgressCallback | None
    # What the solver reports in Info. A function gives its value later: solvers on a device do not wait.
    details: dict[str, Any] = field(default_factory=dict)
    # (channels, height, width) or broadcastable to it, if the noise varies; `sigma` is then its root mean
    # square.
    sigma_map: NDArray[np.float32] | None = None
    # The part of the whole image that `pixels` is; None for all of it. A solver returns as many pixels as it
    # got; those that the region writes are valid.
    region: Region | None = None
    # The largest absolute value of the whole image, or an upper bound, if known; GPU solvers need it.
    peak: float | None = None


def computed(details: dict[str, Any]) -> dict[str, Any]:
    """The details of a job, with the values that were left for later.

    >>> computed({"regions": 2, "turned_share": lambda: [0.5]})
    {'regions': 2, 'turned_share': [0.5]}
    """
    return {name: value() if callable(value) else value for name, value in details.items()}
