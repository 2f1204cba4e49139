"""NLEM and NLPR on a CUDA device."""

from typing import Any

from vnlem.kernels.cpu.nlem import remainder_of
from vnlem.kernels.cuda.engine import Engine, compiled_at_once
from vnlem.kernels.cuda.nlem import nlem
from vnlem.methods.cuda.retry_in_parts import in_regions
from vnlem.methods.window import WindowParams, decay_of, halo, window_of
from vnlem.pipeline.run import Job


@in_regions(halo)
@compiled_at_once
def solve(job: Job[WindowParams], engine: Engine) -> Any:
    """Square patches -> nearest of the window -> IRLS with power gamma over whole patches."""
    window = window_of(job)
    return nlem(
        engine,
        job.pixels,
        window,
        job.params.n_neighbors,
        decay_of(job),
        gamma=job.params.gamma,
        remainder=remainder_of(window),
    )
