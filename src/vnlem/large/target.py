"""The target of a run: created or resumed, compared with its first settings, and finished."""

import json
import shutil
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import vnlem
from vnlem.large.blocks import BlockPlan, BlockSolver, plan_blocks
from vnlem.large.boxes import Box, describe, extent
from vnlem.large.errors import explain
from vnlem.large.markers import Markers, fingerprint
from vnlem.large.ngff import Image
from vnlem.large.nodes import PARTIAL, read_node
from vnlem.large.pyramid import level_shapes
from vnlem.large.sources import TIFF_SUFFIXES, Source
from vnlem.large.stores import SMALLEST_LEVEL, Store, create, new_store, shape_of_part, store_like, try_out
from vnlem.large.worker import RunTask, level_plan


@dataclass(frozen=True)
class PreparedRun:
    """A task, and what is needed to start and to finish it."""

    task: RunTask
    run: dict[str, Any]  # what the markers' folder says about the run
    complete: bool = False  # whether an earlier run has done it all


def plan_for(source: Source, solver: BlockSolver, box: Box, file: tuple[int, ...], memory: int) -> BlockPlan:
    """The plan for a box of the source whose target has files of the shape `file`."""
    halo = dict(zip(solver.axes, solver.halo, strict=True))
    work_halo = dict(zip(solver.axes, solver.work_halo, strict=True))
    files = BlockPlan(
        shape=extent(box),
        unit=file,
        block=file,
        halo=tuple(halo.get(axis, 0) for axis in source.axes),
        work_halo=tuple(work_halo.get(axis, 0) for axis in source.axes),
        offset=tuple(start for start, _ in box),
        whole=source.shape,
    )
    solved = [axis in solver.axes for axis in source.axes]
    itemsize = max(source.dtype.itemsize, source.result_dtype.itemsize)
    return plan_blocks(files, solved, memory, memory_of_block(source, solver), itemsize, solver.cure)


def memory_of_block(source: Source, solver: BlockSolver) -> Callable[[tuple[int, ...]], int]:
    """Gives the bytes that the solution of a block takes, from its shape along all axes of the source."""
    order = [source.axes.index(axis) for axis in solver.axes]
    return lambda shape: solver.memory(tuple(shape[axis] for axis in order))


def target_store(source: Source, box: Box, target: Path) -> Store:
    """The store of a target."""
    offset = tuple(start for start, _ in box)
    straight = source.order == tuple(range(len(source.order)))
    if source.image is not None and straight:
        return store_like(source, extent(box), offset)
    name = target.name.split(".")[0]
    return new_store(source, _level_shapes(source, extent(box), target), name)


def _level_shapes(source: Source, shape: tuple[int, ...], target: Path) -> list[tuple[int, ...]]:
    """A TIFF file keeps the source's levels; a new zarr store gets those that viewers need."""
    about = source.details.get("tiff")
    if about is None or not is_tiff(target):
        return [shape] if is_tiff(target) else level_shapes(shape, SMALLEST_LEVEL)
    inner = [tuple(level[axis] for axis in source.order) for level in about["level_shapes"]]
    if shape == source.shape:
        return inner
    return [shape, *(shape_of_part(shape, inner[0], level) for level in inner[1:])]


def begin(
    source: Source,
    solver: BlockSolver,
    box: Box,
    target: Path,
    digest: str,
    memory: int,
    *,
    resume: bool,
    join: bool,
) -> PreparedRun:
    """Start a run, or continue one.

    source, solver, box, target: the input, how to denoise it, which part, and the output.
    digest: fingerprint of the source.
    memory: bytes a unit may take.
    resume: whether an existing target is continued; otherwise it is refused.
    join: whether other processes work on the same target at the same time: then it may exist.
    """
    markers = Markers.beside(target)
    settings = _settings(source, solver, box, digest)
    begun_before = resume or join
    try:
        found = _known_run(markers, target, begun_before)
        store = target_store(source, box, target)
        here = plan_for(source, solver, box, store.levels[0].file, memory)
        if found is None:
            if source.image is not None:
                try_out(store, source.name)
            run = {"fingerprint": fingerprint(settings), "settings": settings, "plan": here.to_json()}
            found = _claim(markers, target, run, begun_before)
        _check_same(found, settings, target)
        # The units are those of the run; the blocks depend on the memory of this process.
        plan = BlockPlan.from_json(found["plan"])
        block = tuple(min(a, b) for a, b in zip(plan.unit, here.block, strict=True))
        root = markers.folder / "store.zarr" if is_tiff(target) else target
        task = RunTask(
            source=source,
            solver=solver,
            root=root,
            levels=store.levels,
            plans=(replace(plan, block=block), *(level_plan(level) for level in store.levels[1:])),
            markers=markers,
            fingerprint=found["fingerprint"],
            target=target,
        )
        complete = bool(found.pop("complete", False))
        if complete and not target.exists():  # removed since: nothing of it counts as done
            complete = False
            markers.write_run(found)
        if not complete:
            create(root, store)
    except OSError as error:
        if error.errno is None:
            raise
        raise explain(error, target) from error
    return PreparedRun(task, found, complete)


def _settings(source: Source, solver: BlockSolver, box: Box, digest: str) -> dict[str, Any]:
    """Everything the result depends on."""
    about = {
        "shape": list(source.shape),
        "dtype": str(source.dtype),
        "result": str(source.result_dtype),
        "axes": list(source.axes),
        "sample": digest,
    }
    region = describe(box, source.axes)
    return {"version": vnlem.__version__, "source": about, "region": region, **solver.describe()}


def _known_run(markers: Markers, target: Path, begun_before: bool) -> dict[str, Any] | None:
    """What the markers say about the run of a target; None if it has not started."""
    found = markers.read_run()
    if not begun_before:
        refuse_existing(target)
        if found is not None:  # of a target that was removed since
            markers.forget_run()
        return None
    if found is None and target.exists():
        raise ValueError(
            f"{target} exists and there is no {markers.folder.name} that says how it was made; "
            "remove it or choose another name"
        )
    return found


def _claim(markers: Markers, target: Path, run: dict[str, Any], begun_before: bool) -> dict[str, Any]:
    """Record what this run is; if another process was first and this one may join it, return its record."""
    if not target.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {target.parent}; create it first")
    if markers.claim_run(run):
        return run
    found = markers.read_run() if begun_before else None
    if found is None:
        raise FileExistsError(
            f"{target} was begun by another process at the same time; let one of them do it, "
            "or give each a part of it (--part 1/2, --part 2/2)"
        )
    return found


def is_tiff(path: Path) -> bool:
    """Whether a name is that of a TIFF file."""
    return path.suffix.lower() in TIFF_SUFFIXES


def refuse_existing(target: Path) -> None:
    """Refuse to overwrite a target that exists or was started."""
    markers = Markers.beside(target)
    found = markers.read_run()
    if found is not None and not found.get("complete"):
        raise FileExistsError(
            f"{target} was begun and is not complete; continue with --resume, or remove it and "
            f"{markers.folder.name}"
        )
    if target.exists():
        raise FileExistsError(f"{target} exists; remove it or choose another name")


def _check_same(found: dict[str, Any], settings: dict[str, Any], target: Path) -> None:
    if found["fingerprint"] == fingerprint(settings):
        return
    what = "; ".join(differences(found["settings"], settings)[:3]) or "its settings differ"
    raise ValueError(
        f"{target} was begun with other options ({what}); repeat the options of that run, or remove it and "
        f"{Markers.beside(target).folder.name}"
    )


def differences(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """What differs between the settings of two runs, as sentences; settings of only one of them come last.

    >>> old = {"parameters": [{"profile": "fast", "sizes": [7]}], "version": "1"}
    >>> new = {"parameters": [{"profile": "quality", "sizes": (7,)}] * 2, "version": "1"}
    >>> differences(old, new)
    ["profile was 'fast' and is 'quality'", 'parameters: 1 before, 2 now']
    """
    # As read back from JSON: tuples have become lists.
    old, new = (json.loads(json.dumps(settings, default=str)) for settings in (before, after))
    changed: list[str] = []
    counted: list[str] = []
    _compare("", old, new, changed, counted)
    return list(dict.fromkeys([*changed, *counted]))


def _compare(name: str, old: Any, new: Any, changed: list[str], counted: list[str]) -> None:
    """Compare dictionaries by their names and lists of dictionaries one by one."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in dict.fromkeys([*old, *new]):
            # Parameters of all scales and rounds are known by their own names.
            inner = key if name in ("", "parameters") else f"{name}.{key}"
            _compare(inner, old.get(key), new.get(key), changed, counted)
    elif all(isinstance(both, list) and both and isinstance(both[0], dict) for both in (old, new)):
        for first, second in zip(old, new, strict=False):
            _compare(name, first, second, changed, counted)
        if len(old) != len(new):
            counted.append(f"{name}: {len(old)} before, {len(new)} now")
    elif old != new:
        changed.append(f"{name} was {old!r} and is {new!r}")


def finish(job: PreparedRun) -> None:
    """Complete the target and mark it as complete. It is safe to do this twice."""
    task = job.task
    try:
        sweep([task.root, task.markers.folder])
        if is_tiff(task.target):
            from vnlem.large.tiff_target import assemble

            assemble(task)
        else:
            _copy_labels(job)
        task.markers.write_run({**job.run, "complete": True})
        task.markers.forget_units()
        if is_tiff(task.target):
            shutil.rmtree(task.root, ignore_errors=True)
    except OSError as error:
        raise explain(error, task.target) from error


def _copy_labels(job: PreparedRun) -> None:
    """Copy labels, which denoising does not change; they do not fit a part of an image."""
    image = job.task.source.image
    if isinstance(image, Image) and job.task.plans[0].shape == job.task.source.shape:
        folder = image.group.path / "labels"
        if read_node(folder) is not None:
            copy_tree(folder, job.task.root / "labels")


def sweep(folders: Iterable[Path]) -> None:
    """Remove the leftovers of killed writers, after all writing has ended."""
    for folder in folders:
        for path in folder.rglob(f"*{PARTIAL}"):
            with suppress(FileNotFoundError):
                path.unlink()


def copy_tree(source: Path, target: Path) -> None:
    """Copy a folder file by file; existing files of the same length stay."""
    for path in sorted(source.rglob("*")):
        if path.is_file():
            copy = target / path.relative_to(source)
            if not copy.exists() or copy.stat().st_size != path.stat().st_size:
                copy.parent.mkdir(parents=True, exist_ok=True)
                partial = copy.with_name(copy.name + PARTIAL)
                shutil.copyfile(path, partial)
                partial.replace(copy)
