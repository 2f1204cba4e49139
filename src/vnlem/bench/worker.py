"""The work of a process: take an image, denoise and measure it with every requested method, report rows."""

import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vnlem.bench.datasets import Item
from vnlem.bench.memory import PeakMemory
from vnlem.bench.pictures import picture_path, write_picture, write_scene
from vnlem.bench.protocols import Case, Scene, measure, scenes
from vnlem.bench.results import Row
from vnlem.bench.variants import NOISY, Variant

# A first run on a small piece loads or compiles what a method needs, to keep that out of the times.
_WARM_UP_SIDE = 48
_WARM_UP_PAGES = 3


@dataclass(frozen=True)
class Task:
    """One image, and for each case the variants to run; `with_noisy` if the noisy image lacks its row."""

    item: Item
    parts: tuple[tuple[Case, tuple[Variant, ...], bool], ...]

    @property
    def n_rows(self) -> int:
        """How many rows it will give."""
        return sum(len(variants) + with_noisy for _, variants, with_noisy in self.parts)


@dataclass(frozen=True)
class Ready:
    """The worker has started."""


@dataclass(frozen=True)
class Unreadable:
    """The image could not be read or prepared."""

    image: str
    reason: str


@dataclass(frozen=True)
class Failure:
    """A method could not denoise the image, or the worker died over it (then `method` is empty)."""

    image: str
    case: str
    method: str
    reason: str


@dataclass(frozen=True)
class Done:
    """The image is finished after `busy` seconds; `measuring` of these went into the measures."""

    image: str
    busy: float
    measuring: float


@dataclass(frozen=True)
class CannotWrite:
    """The pictures could not be written: the disk is full or the folder read-only. The run must stop."""

    reason: str


@dataclass
class Habits:
    """What a worker keeps from image to image: the variants it has run, and the time its measures took."""

    warm: set[str] = field(default_factory=set)
    measuring: float = 0.0

    def measure(self, scene: Scene, result: NDArray[np.float64]) -> dict[str, float | None]:
        """Every measure of a result."""
        begun = time.perf_counter()
        measures = measure(scene, result)
        self.measuring += time.perf_counter() - begun
        return measures


Event = Ready | Row | Unreadable | Failure | Done | CannotWrite


def serve(connection: Connection, out: Path | None, threads: int) -> None:
    """Work on tasks from the connection until it closes.

    connection: tasks come in, events go out.
    out: folder of the results, for the pictures; None writes none.
    threads: this worker's share of the cores.
    """
    # Ctrl-C reaches every process of a terminal; only the parent decides what it means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    habits = Habits()
    try:
        connection.send(Ready())
        while True:
            task: Task = connection.recv()
            begun = time.perf_counter()
            habits.measuring = 0.0
            for event in work(task, out, threads, habits):
                connection.send(event)
            connection.send(Done(task.item.name, time.perf_counter() - begun, habits.measuring))
    except (EOFError, BrokenPipeError, ConnectionResetError):
        return  # the parent has gone


def work(task: Task, out: Path | None, threads: int, habits: Habits) -> Iterator[Event]:
    """Denoise and measure one image."""
    item = task.item
    by_case = {case: (variants, with_noisy) for case, variants, with_noisy in task.parts}
    try:
        digest = item.digest()
        for case, scene in scenes(item, list(by_case)):
            variants, with_noisy = by_case[case]
            if out is not None:
                try:
                    write_scene(out, item, case, scene)
                except OSError as error:
                    yield _cannot_write(error)
                    return
            if with_noisy:
                measures = habits.measure(scene, scene.noisy)
                yield _row(item, case, scene, None, digest, measures, None, None)
            for variant in variants:
                yield _denoise(item, case, scene, variant, digest, out, threads, habits)
    except (ValueError, OSError, MemoryError) as error:
        yield Unreadable(item.name, _sentence(error, item.path))


def _denoise(
    item: Item,
    case: Case,
    scene: Scene,
    variant: Variant,
    digest: str,
    out: Path | None,
    threads: int,
    habits: Habits,
) -> Event:
    try:
        if variant.hash not in habits.warm and not variant.is_command:
            corner: tuple[slice, ...] = (slice(_WARM_UP_SIDE), slice(_WARM_UP_SIDE))
            if scene.axes != "YX":
                corner = (slice(_WARM_UP_PAGES), *corner)
            variant.run(scene.noisy[corner].copy(), scene.sigma, threads, scene.axes)
            habits.warm.add(variant.hash)
        peak = PeakMemory()
        begun = time.perf_counter()
        result = np.asarray(
            variant.run(scene.noisy.copy(), scene.sigma, threads, scene.axes), dtype=np.float64
        )
        seconds = time.perf_counter() - begun
        mebibytes = peak.mebibytes()
        measures = habits.measure(scene, result)
    except Exception as error:  # whatever a method raises, the other methods and images go on
        return Failure(item.name, case.name, variant.label, _sentence(error, item.path))
    if out is not None:
        try:
            write_picture(out / picture_path(item, case, variant.hash), scene.page(result))
        except OSError as error:
            return _cannot_write(error)
    return _row(item, case, scene, variant, digest, measures, seconds, mebibytes)


def _row(
    item: Item,
    case: Case,
    scene: Scene,
    variant: Variant | None,
    digest: str,
    measures: dict[str, float | None],
    seconds: float | None,
    mebibytes: float | None,
) -> Row:
    height, width = scene.page(scene.noisy).shape
    return Row(
        image=item.name,
        category=item.category,
        case=case,
        method=NOISY if variant is None else variant.label,
        parameters="" if variant is None else variant.parameters,
        hash=NOISY if variant is None else variant.hash,
        seed=scene.seed,
        digest=digest,
        height=height,
        width=width,
        sigma=scene.sigma,
        measures={name: None if value is None else float(f"{value:.7g}") for name, value in measures.items()},
        seconds=None if seconds is None else round(seconds, 4),
        peak_memory_mib=None if mebibytes is None else round(mebibytes, 1),
    )


def _sentence(error: BaseException, path: str) -> str:
    text = " ".join(str(error).split()) or type(error).__name__
    return text.removeprefix(f"cannot read {path}: ")


def _cannot_write(error: OSError) -> CannotWrite:
    return CannotWrite(error.strerror or str(error))
