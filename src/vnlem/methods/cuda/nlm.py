"""NLM on a CUDA device."""

from typing import Any

from vnlem.kernels.cuda.engine import Engine, compiled_at_once
from vnlem.kernels.cuda.nlm import BLOCK_ROWS, nlm
from vnlem.methods.cuda.retry_in_parts import in_regions
from vnlem.methods.window import WindowParams, decay_of, halo, window_of
from vnlem.pipeline.run import Job


@in_regions(halo, grain=BLOCK_ROWS)
@compiled_at_once
def solve(job: Job[WindowParams], engine: Engine) -> Any:
    """Square patches -> whole window -> weighted mean of the central pixels."""
    return nlm(engine, job.pixels, window_of(job), decay_of(job))
