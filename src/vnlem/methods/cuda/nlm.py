"""NLM on a CUDA device."""

from typing import Any

from vnlem.kernels.cuda.engine import Engine, compiled_at_once
from vnlem.kernels.cuda.nlm import OF_IMAGE, OF_SIGNAL, nlm
from vnlem.methods.cuda.retry_in_parts import in_regions
from vnlem.methods.window import WindowParams, decay_of, halo, is_signal, window_of
from vnlem.pipeline.run import Job


@in_regions(halo, grain=OF_IMAGE.height)
@compiled_at_once
def solve(job: Job[WindowParams], engine: Engine) -> Any:
    """Square patches -> whole window -> weighted mean of the central pixels."""
    block = OF_SIGNAL if is_signal(job.pixels) else OF_IMAGE
    return nlm(engine, job.pixels[None], 0, window_of(job), decay_of(job), block)
