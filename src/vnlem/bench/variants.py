"""Which denoisers take part: ``nlem``, ``vnlem:auto``, ``vnlem:angle_range=0``, ``bm3d``."""

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import PurePath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vnlem.bench.command_peer import METHOD as COMMAND
from vnlem.bench.command_peer import check_command, run_command
from vnlem.bench.peers import PEER_NAMES, STACK_PEERS, find_peer
from vnlem.pipeline.lazy import load

DEFAULTS = ("nlem", "vnlem", "vnlem-dd", "vnlr")
PAGES = "pages"  # the word for page by page on a stack
STACK_DEFAULTS = (f"nlm:{PAGES}", "nlm", f"vnlr:{PAGES}", "vnlr")
NOISY = "noisy"  # the label under which the noisy image itself is measured
PRESETS = ("paper", "auto")
PROFILES = ("best", "quality", "balanced", "fast")
NOISE_MODELS = ("gaussian", "poisson-gaussian", "correlated")


@dataclass(frozen=True)
class Variant:
    """A method with its preset and parameters, or a peer.

    label: what the user wrote; tables show it.
    target: "module:function" of one of our methods; empty for a peer.
    arguments: names and values of what is passed to the method beyond image, sigma and workers.
    """

    label: str
    method: str
    target: str
    arguments: tuple[tuple[str, Any], ...] = ()

    @property
    def parameters(self) -> str:
        """Method and arguments as JSON, for the hash."""
        return json.dumps({"method": self.method, **dict(self.arguments)}, sort_keys=True)

    @property
    def is_command(self) -> bool:
        """Whether it is a program."""
        return self.method == COMMAND and not self.target

    @property
    def hash(self) -> str:
        """Short fingerprint of method, preset and parameters."""
        return blake2b(self.parameters.encode(), digest_size=6).hexdigest()

    def run(self, noisy: NDArray[np.float64], sigma: float, threads: int, axes: str = "YX") -> NDArray[Any]:
        """Denoise a grey image, a colour image ("YXC") or a stack ("TYX", "ZYXC", ...) in 0..255."""
        if self.is_command:
            return run_command(dict(self.arguments)["command"], noisy, sigma, threads, axes)
        if not self.target and axes.endswith("C"):
            return _each_channel(lambda grey: self.run(grey, sigma, threads, axes[:-1]), noisy)
        if not self.target and (axes == "YX" or self.method in STACK_PEERS):
            peer = find_peer(self.method)
            assert peer is not None
            return peer(noisy, sigma, threads)
        if axes not in ("YX", "YXC"):
            return self._run_on_stack(noisy, sigma, threads, axes)
        arguments = dict(self.arguments) | ({"channel_axis": -1} if axes == "YXC" else {})
        if "noise_model" in arguments:
            from vnlem.api import denoise

            # The noise is estimated from the image; a sigma alone would not say its kind.
            return np.asarray(denoise(noisy, method=self.method, workers=threads, **arguments))
        result: NDArray[Any] = load(self.target)(noisy, sigma, workers=threads, **arguments)
        return result

    def _run_on_stack(
        self, noisy: NDArray[np.float64], sigma: float, threads: int, axes: str
    ) -> NDArray[Any]:
        arguments = dict(self.arguments)
        if not self.target or arguments.pop(PAGES, False):
            alone = replace(self, arguments=tuple(arguments.items()))
            return np.stack([alone.run(page, sigma, threads, axes[1:]) for page in noisy])
        from vnlem.api import denoise

        given = None if "noise_model" in arguments else sigma
        if given is not None:
            arguments["noise_model"] = "gaussian"
        return np.asarray(denoise(noisy, given, axes=axes, method=self.method, workers=threads, **arguments))


def _each_channel(
    denoise: Callable[[NDArray[np.float64]], NDArray[Any]], noisy: NDArray[np.float64]
) -> NDArray[Any]:
    """Grey images or stacks from those with a last axis of channels, denoised one by one."""
    return np.stack(
        [denoise(np.ascontiguousarray(noisy[..., channel])) for channel in range(noisy.shape[-1])], axis=-1
    )


def command_variants(commands: Iterable[str]) -> list[Variant]:
    """Programs to compare with, from ``--peer-command``; tables show the program's name.

    >>> [variant.label for variant in command_variants(["/opt/tool {in} {out}", "other {in} {out} {sigma}"])]
    ['tool', 'other']
    """
    found = {command: PurePath(check_command(command)[0]).name for command in commands}
    twice = {name for name in found.values() if list(found.values()).count(name) > 1}
    return [
        Variant(command if name in twice else name, COMMAND, "", (("command", command),))
        for command, name in found.items()
    ]


def parse_variants(texts: Iterable[str], protocol: str) -> list[Variant]:
    """Variants from ``--methods``.

    Parts follow the method's name after colons: a preset, a profile, a noise model to estimate from the image
    (also as ``noise_model=auto``), or ``name=value``. Without a preset the paper's protocol uses the paper's
    if the method has it; everything else uses "auto".

    >>> [variant.arguments for variant in parse_variants(["nlem", "nlem:auto:bandwidth=5"], "paper")]
    [(('preset', 'paper'),), (('bandwidth', 5), ('preset', 'auto'))]
    """
    variants: list[Variant] = []
    for text in filter(None, (text.strip() for text in texts)):
        variant = _parse(text, protocol)
        for other in variants:
            if other.hash == variant.hash:
                raise ValueError(f"--methods names the same thing twice: {other.label} and {variant.label}")
        variants.append(variant)
    if not variants:
        raise ValueError("--methods names no method")
    return variants


def default_methods(protocol: str = "paper") -> list[str]:
    """The paper's methods and the package's own, as far as they exist; for stacks also page by page.

    >>> default_methods()[0], default_methods("stack")[-1]
    ('nlem', 'vnlr')
    """
    from vnlem.registry import names

    return list(STACK_DEFAULTS) if protocol == "stack" else [name for name in DEFAULTS if name in names()]


def _parse(text: str, protocol: str) -> Variant:
    from vnlem.registry import check_preset, find_method, names

    name, *parts = (part.strip() for part in text.split(":"))
    method = name.lower().replace("_", "-")
    if method in STACK_PEERS and protocol != "stack":
        raise ValueError(f"{method} is for stacks; use it with --protocol stack")
    if find_peer(method) is not None:
        if parts:
            raise ValueError(f"{method} takes no preset and no parameters here, got {text!r}")
        return Variant(text, method, "")
    if method not in names():
        raise ValueError(
            f"unknown method {name!r}; the methods are {', '.join(names())}, "
            f"the peers {', '.join(PEER_NAMES)}"
        )
    ours = find_method(method)
    function, known = load(ours.function), ours.parameters
    words = [part for part in parts if "=" not in part]
    blind = "noise_model=auto" in parts
    settings = [part for part in parts if "=" in part and part != "noise_model=auto"]
    arguments = _settings(settings, function, method, protocol) | ({"noise_model": "auto"} if blind else {})
    for word in words:
        if word == PAGES and protocol == "stack":
            arguments[PAGES] = True
        elif word in PRESETS:
            arguments["preset"] = check_preset(ours, word)
        elif word in PROFILES and "profile" in known:
            arguments["profile"] = word
        elif word in NOISE_MODELS:
            arguments["noise_model"] = word
        else:
            profiles = f", a profile ({', '.join(PROFILES)})" if "profile" in known else ""
            raise ValueError(
                f"{word!r} in {text!r} is neither a preset ({', '.join(PRESETS)}){profiles}, "
                f"nor a noise model ({', '.join(NOISE_MODELS)}), nor name=value"
            )
    if "preset" in known:
        paper = protocol == "paper" and ours.has_paper_preset
        arguments.setdefault("preset", "paper" if paper else "auto")
    return Variant(text, method, ours.function, tuple(sorted(arguments.items())))


def _settings(texts: list[str], function: Any, method: str, protocol: str) -> dict[str, Any]:
    """Parameters of the method, or on stacks of what it does with all pages together."""
    from vnlem.pipeline.settings import parse_settings
    from vnlem.registry import stack_method

    on_stacks = stack_method(method) if protocol == "stack" else None
    try:
        return parse_settings(texts, function, method)
    except ValueError:
        if on_stacks is None:
            raise
        return parse_settings(texts, load(on_stacks.prepare), method)
