"""The end of a run: leftovers swept, labels copied, a TIFF file assembled, the run marked as complete."""

import shutil

from vnlem.large.errors import explain
from vnlem.large.ngff import Image
from vnlem.large.nodes import read_node
from vnlem.large.prepare import PreparedRun, is_tiff
from vnlem.large.run import copy_tree, sweep


def finish(job: PreparedRun) -> None:
    """Make the target whole and say that it is; whoever does it twice does no harm."""
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
    """Labels tell what is where, which denoising does not change; a part of an image has no use for them."""
    image = job.task.source.image
    if isinstance(image, Image) and job.task.plans[0].shape == job.task.source.shape:
        folder = image.group.path / "labels"
        if read_node(folder) is not None:
            copy_tree(folder, job.task.root / "labels")
