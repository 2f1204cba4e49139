"""A method as a value: its parameters, its solver for each engine, its halo and other properties.

A module of `vnlem.methods` has a public function, whose signature is the list of the method's parameters, and
a value METHOD, which describes everything else. All other code uses that value.
"""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache, wraps
from typing import Any, TypeVar, cast

from vnlem.pipeline import checks
from vnlem.pipeline.lazy import load
from vnlem.pipeline.run import Result

Function = TypeVar("Function", bound=Callable[..., Any])

# Arguments that every method's function has: of the call, not of the method.
CALL = ("image", "sigma", "channel_axis", "workers", "progress", "return_info", "device")


@cache
def arguments_of(function: Callable[..., Any]) -> dict[str, Any]:
    """The arguments of a function, with their defaults.

    >>> list(arguments_of(lambda image, sigma=None, *, patch_size=None, workers=None: None))
    ['image', 'sigma', 'patch_size', 'workers']
    """
    return {name: one.default for name, one in inspect.signature(function).parameters.items()}


def names_parameters(function: Function) -> Function:
    """Make a public function list its parameters when it is called with one that it does not have.

    >>> @names_parameters
    ... def denoise_new(image, sigma=None, *, patch_size=5): ...
    >>> denoise_new(None, patchsize=3)
    Traceback (most recent call last):
    ...
    TypeError: denoise_new has no parameter 'patchsize'; it has patch_size
    """
    known = arguments_of(function)
    own = ", ".join(name for name in known if name not in ("image", "sigma"))

    @wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        for name in options:
            if name not in known:
                raise TypeError(f"{function.__name__} has no parameter {name!r}; it has {own}")
        return function(*args, **options)

    return cast(Function, call)


@dataclass(frozen=True)
class StackMethod:
    """How a method denoises the pages of a series together; functions by their places."""

    kinds: str  # the series it supports: T along time, Z along depth, N several images
    prepare: str  # (task, **parameters) -> SeriesParams, solver of an iterator of pages
    halo: str  # parameters -> planes, rows and columns around a part that its result depends on
    planes_in_flight: str  # parameters -> planes that are held
    channels: bool = False  # whether pages may have several channels that belong together
    sigma_maps: bool = False  # whether the noise may vary within a series
    cuda: str = ""  # what takes the standardised pages and gives the denoised ones on a GPU
    cuda_grain: int = 1  # on a GPU, parts of pages are read from multiples of this


@dataclass(frozen=True)
class Method:
    """A method.

    function: place of the public function, "module:name".
    resolve: (noise, ndim, **parameters) -> all parameters as a dataclass, checked. noise: in units of the
        clean image's standard deviation; ndim: 1 for a signal, 2 for an image; parameters: those of the
        public function, including its defaults.
    engines: engine, or "cuda", -> place of the solver: Job -> denoised planes.
    halo: parameters -> number of pixels around a part of an image that its result depends on. A method
        without it needs the whole image at once.
    work_halo: the same for the pixels that are processed, averaged over the passes, if that is less.
    members: parameters -> the parameters of the runs whose mean is the result; by default one run, with
        these. If there are two, the first has the smaller patches, see `vnlem.estimate.runs`.
    in_colour: parameters -> those for three channels that are denoised jointly; by default the same.
    min_size: parameters -> the smallest height and width that can be denoised; by default their `patch_size`.
    has_paper_preset: whether preset="paper" exists.
    signals, sigma_maps: whether it takes one-dimensional input, and noise that differs between channels or
        pixels.
    bytes_per_pixel: memory that solving takes per pixel and channel (benchmarks/large_memory.py).
    cuda_grain: on a GPU parts are read from multiples of this, for kernels whose sums restart there.
    stack: how the pages of a series are denoised together; without it they are denoised one by one.
    """

    name: str
    function: str
    resolve: Callable[..., Any]
    engines: Mapping[str, str]
    halo: Callable[[Any], int] | None = None
    work_halo: Callable[[Any], int] | None = None
    members: Callable[[Any], tuple[Any, ...]] = field(default=lambda params: (params,))
    in_colour: Callable[[Any], Any] = field(default=lambda params: params)
    min_size: Callable[[Any], int] = field(default=lambda params: getattr(params, "patch_size", 1))
    has_paper_preset: bool = False
    signals: bool = False
    sigma_maps: bool = False
    bytes_per_pixel: int = 175
    cuda_grain: int = 1
    stack: StackMethod | None = None

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of the method's own parameters."""
        return tuple(name for name in arguments_of(load(self.function)) if name not in CALL)

    def check(self, given: Mapping[str, Any]) -> None:
        """Refuse parameters that the method does not have, and a preset or an engine it does not have."""
        unknown = [name for name in given if name not in self.parameters]
        if unknown:
            own = ", ".join(name for name in self.parameters if name != "preset")
            raise TypeError(f"method {self.name!r} has no parameter {unknown[0]!r}; it has {own}")

    def with_defaults(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """All parameters: those given, the function's defaults for the others."""
        self.check(given)
        defaults = arguments_of(load(self.function))
        return {name: given.get(name, defaults[name]) for name in self.parameters}

    def denoise(
        self, image: Any, sigma: Any = None, *, params: Mapping[str, Any] | None = None, **arguments: Any
    ) -> Result:
        """Run the public function; `arguments` and `params` are the function's, including defaults."""
        result: Result = load("vnlem.call:denoise_with")(self, image, sigma, **(params or {}), **arguments)
        return result

    def solver(self, engine: str = "fast", device: str = "cpu") -> Any:
        """The solver for an engine and a device, or an error that names those it has."""
        if device != "cpu":
            if engine != "fast":
                raise ValueError(f"engine={engine!r} runs on the CPU only; pass device='cpu'")
            if "cuda" not in self.engines:
                raise ValueError(f"{self.name} does not run on a GPU; pass device='cpu'")
            return load(self.engines["cuda"])
        checks.choice("engine", engine, tuple(name for name in self.engines if name != "cuda"))
        return load(self.engines[engine])

    def grain(self, device: str) -> int:
        """Parts of an image are read from multiples of this."""
        return 1 if device == "cpu" else self.cuda_grain
