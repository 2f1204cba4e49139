"""The choices of the user in the widget, as a value that gives arguments of ``vnlem.denoise``."""

from dataclasses import dataclass
from typing import Any

from vnlem.registry import DEFAULT_METHOD

# The methods that take a profile and a group of rotations.
WITH_PROFILES = ("vnlr",)


@dataclass(frozen=True)
class Settings:
    """One set of choices; None is estimated or left to the method.

    >>> Settings(noise="gaussian", sigma=12.0).arguments()
    {'method': 'vnlr', 'profile': 'balanced', 'sigma': 12.0}
    """

    method: str = DEFAULT_METHOD
    profile: str = "balanced"
    group: str = "d4"
    device: str = "cpu"
    strength: float = 1.0  # share of the change that is applied
    lines: str = "auto"
    impulses: str = "auto"
    noise: str = "auto"
    caution: str = "auto"
    sigma: float | None = None
    gain: float | None = None
    offset: float | None = None
    read_noise: float | None = None
    coils: int | None = None  # of Rician noise
    looks: float | None = None  # of speckle
    model_file: str = ""  # a noise model as JSON, for "file"

    def method_arguments(self) -> dict[str, Any]:
        """The arguments of ``vnlem.denoise`` that say how to denoise, without the noise."""
        chosen: dict[str, Any] = {"method": self.method}
        if self.method in WITH_PROFILES:
            chosen["profile"] = self.profile
            if self.group != "d4":
                chosen["group"] = self.group
        if self.device != "cpu":
            chosen["device"] = self.device
        if self.strength < 1:
            chosen["strength"] = self.strength
        for name, wanted in (("lines", self.lines), ("impulses", self.impulses)):
            if wanted != "auto":
                chosen[name] = wanted == "yes"
        return chosen

    def channel_arguments(self, axes: str) -> dict[str, Any]:
        """The argument that keeps the channels of a stack apart, each with its own noise, as in previews."""
        return {"channels": "separate"} if "C" in axes and self.method in WITH_PROFILES else {}

    def noise_arguments(self) -> dict[str, Any]:
        """The arguments of ``vnlem.denoise`` that say what the noise is; a file is named elsewhere."""
        if self.noise == "gaussian":
            return {"noise_model": "gaussian"} if self.sigma is None else {"sigma": self.sigma}
        if self.noise == "poisson-gaussian":
            known = {"gain": self.gain, "offset": self.offset, "read_noise": self.read_noise}
            chosen = {name: value for name, value in known.items() if value is not None}
            return {"noise_model": "poisson-gaussian", **(chosen if self.gain is not None else {})}
        if self.noise in ("correlated", "rician", "speckle"):
            told = {"rician": ("coils", self.coils), "speckle": ("looks", self.looks)}
            name, value = told.get(self.noise, ("", None))
            return {"noise_model": self.noise} | ({} if value is None else {name: value})
        return {} if self.caution == "auto" else {"caution": self.caution}

    def arguments(self) -> dict[str, Any]:
        """All arguments of ``vnlem.denoise`` that differ from its defaults."""
        return {**self.method_arguments(), **self.noise_arguments()}
