"""``vnlem.denoise_large``: from one store or file to another, of any size."""

import os
from contextlib import closing
from pathlib import Path
from typing import Any

from numpy.typing import DTypeLike

from vnlem.large.dry_run import Forecast, forecast
from vnlem.large.memory import default_memory, parse_bytes
from vnlem.large.runner import RunOptions, Summary, denoise_source, memory_of_one
from vnlem.large.sample import take_sample
from vnlem.large.selection import RegionText, parse_part, parse_region
from vnlem.large.sensor import with_sensor
from vnlem.large.solvers import find_solver
from vnlem.large.sources import open_source
from vnlem.large.target import is_tiff, plan_for, target_store
from vnlem.pipeline.dtypes import check_dtype
from vnlem.pipeline.progress import Progress
from vnlem.pipeline.warn import said_once
from vnlem.registry import DEFAULT_METHOD


def denoise_large(
    source: Any,
    target: str | os.PathLike[str],
    sigma: float | None = None,
    *,
    method: str = DEFAULT_METHOD,
    axes: str | None = None,
    stack: bool = True,
    region: RegionText | None = None,
    memory: int | float | str | None = None,
    resume: bool = False,
    part: str | tuple[int, int] | None = None,
    cluster: Any = None,
    dry_run: bool = False,
    workers: int | None = None,
    progress: Progress = False,
    device: str | None = None,
    dtype: DTypeLike | None = None,
    **params: Any,
) -> Summary | Forecast:
    """Denoise an image that need not fit in memory.

    Parameters
    ----------
    source : path, or anything with shape, dtype and slicing
        An OME-Zarr image (NGFF 0.4 or 0.5), a zarr array, a TIFF, NPY or HDF5 file (``file.h5:dataset``), or
        an array of zarr, h5py, dask or NumPy.
    target : path
        The zarr store (``.zarr``) or TIFF file (``.tif``) to write. If the source is a zarr store, the target
        is one of the same kind with the same metadata; its pyramid is recomputed.
    sigma : float, optional
        Standard deviation of the noise in the units of the pixels; estimated from a sample when None.
    method : str
        As in :func:`vnlem.denoise`.
    axes : str, optional
        Names of the axes, e.g. "tzyx", if the source does not give them. Pages of unnamed axes are denoised
        one by one with the same noise, the channels of RGB files together.
    stack : bool
        Let the frames of a movie (t) and the slices of a volume (z) help each other, as :func:`vnlem.denoise`
        does with `axes`; each channel has its own noise. False: page by page, with one noise for all.
    region : str or dict, optional
        Only this part, e.g. "y=0:2048,x=0:2048", with the same bytes as in the whole result.
    memory : int or str, optional
        Memory limit of the work, e.g. "4GB"; half of the free memory when None. The program itself needs
        about 300 MB more. With a cluster it is the limit of each worker, with ``local:N`` of all together.
    resume : bool
        Continue an unfinished target. Finished units are skipped; parameters or input that differ from those
        of the first run are refused.
    part : str, optional
        "3/16": do the third of sixteen parts and leave the others to other processes, such as the members of
        a job array. The last one to finish makes the pyramid.
    cluster : str or distributed.Client, optional
        Do the units on Dask workers: the address of a scheduler ("tcp://host:8786"), "local:4" for processes
        here, or a client.
    dry_run : bool
        Say what would be done, and how long it would take, without writing anything.
    workers : int, optional
        Threads of each process; all cores when None. The result does not depend on it.
    progress : bool or callable(done, total)
        Show a bar, or call your own function for every unit.
    device : {None, "cpu", "cuda", "cuda:1", "auto"}
        Where to denoise the units; on the CPU when None. A GPU denoises them one after another, with the same
        bytes as the whole image there. With a cluster "cuda" is the first GPU that a worker sees; this
        machine needs none.
    dtype : dtype, optional
        Dtype of the result; that of the source when None.
    **params
        Other arguments of :func:`vnlem.denoise`: parameters of the method, the noise model.

    Returns
    -------
    Summary, or Forecast with `dry_run`
        What was done, with which noise and parameters; or what would be done.

    Notes
    -----
    The work is cut into units that cover whole files (shards, or chunks) of the target, so no two units write
    the same file. A unit is read with the margin (halo) that its method needs to get the same bytes as the
    whole. When its files are safely on disk, a marker is written to the folder ``TARGET.vnlem``.

    Examples
    --------
    >>> import numpy as np, tempfile, vnlem, zarr
    >>> folder = tempfile.mkdtemp()
    >>> noisy = np.random.default_rng(0).normal(1000, 50, (300, 400)).astype(np.uint16)
    >>> noisy[100:200, 100:200] += 500
    >>> summary = vnlem.denoise_large(noisy, f"{folder}/out.ome.zarr", 50, method="nlm")
    >>> result = zarr.open_group(f"{folder}/out.ome.zarr")["0"][:]
    >>> bool((result == vnlem.denoise(noisy, 50, method="nlm")).all())
    True
    """
    opened = open_source(source, axes)
    place = Path(target)
    _check_target(place)
    if isinstance(source, str | os.PathLike) and place.exists() and place.samefile(source):
        raise ValueError(
            f"the target is the source ({place}); choose another name, so that the original stays"
        )
    opened.wanted = None if dtype is None else check_dtype(dtype)
    box = parse_region(region, opened.axes, opened.shape)
    options = RunOptions(
        memory=default_memory() if memory is None else parse_bytes(memory),
        resume=resume,
        part=parse_part(part),
        cluster=cluster,
        workers=workers,
        progress=progress,
    )
    params = with_sensor(opened, params)
    with said_once(), closing(opened):
        sample = take_sample(opened)
        elsewhere = cluster is not None and not dry_run
        solver = find_solver(
            opened, sample, sigma, method, {**params, "device": device}, stack=stack, elsewhere=elsewhere
        )
        if not dry_run:
            return denoise_source(opened, solver, box, place, sample.digest, options)
        store = target_store(opened, box, place)
        plan = plan_for(opened, solver, box, store.levels[0].file, memory_of_one(options))
        return forecast(opened, solver, box, plan, [level.shape for level in store.levels], workers)


def _check_target(target: Path) -> None:
    if not (is_tiff(target) or target.suffix.lower() == ".zarr"):
        raise ValueError(f"the target must be a zarr store (.zarr) or a TIFF file (.tif), got {target}")
