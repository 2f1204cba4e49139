"""Cut the small sample files of docs/tutorials/data out of the public sets they come from.

    python docs/make_tutorial_data.py DATA

DATA is the folder of sets that docs/data.md describes. The samples are part of the repository, so nobody
needs to run this to follow a tutorial.
"""

import sys
from pathlib import Path

import mrcfile
import nibabel
import numpy as np
import tifffile

from vnlem import io

OUT = Path(__file__).parent / "tutorials" / "data"


def main(data: Path) -> None:
    """Write all samples."""
    OUT.mkdir(parents=True, exist_ok=True)
    confocal = io.read(data / "fmd" / "Confocal_MICE_noisy.png").pixels
    io.write(OUT / "confocal.tif", confocal[128:384, 128:384])
    wide = io.read(data / "fmd" / "WideField_BPAE_G_noisy.png").pixels
    io.write(OUT / "widefield.tif", wide[128:384, 128:384])
    for kind, name in (("noisy", "two-photon"), ("ref", "two-photon-mean")):
        mice = io.read(data / "fmd" / f"TwoPhoton_MICE_{kind}.png").pixels
        io.write(OUT / f"{name}.tif", mice[128:320, 128:320])
    movie = tifffile.imread(data / "stacks" / "time_beads_real.tif")
    tifffile.imwrite(OUT / "movie.tif", movie[:, :128, 128:], compression="zlib")
    volume = tifffile.imread(data / "stacks" / "volume_ovule_real.tif")[10:20].astype(float)
    noisy = volume + np.random.default_rng(0).normal(0, 20, volume.shape)  # as published it is smooth
    noisy = np.clip(np.rint(noisy), 0, 255).astype(np.uint8)
    tifffile.imwrite(OUT / "volume.tif", noisy, imagej=True, metadata={"axes": "ZYX"})
    photo = io.read(data / "photo_pairs" / "cc_d800_iso6400_1_noisy.png").pixels
    io.write(OUT / "photo.png", np.ascontiguousarray(photo[:256, :256]))
    head = nibabel.load(data / "formats" / "S0_10slices.nii.gz")
    cut = np.asarray(head.dataobj)[16:112, 8:120, 2:8, 0]
    nibabel.save(nibabel.Nifti1Image(cut, head.affine), OUT / "head.nii.gz")
    with mrcfile.open(data / "formats" / "EMD-3001.map") as opened:
        clean, size = opened.data[4:16], opened.voxel_size
    with mrcfile.new(OUT / "map.mrc", overwrite=True) as target:
        target.set_data((clean + np.random.default_rng(0).normal(0, 0.1, clean.shape)).astype(np.float32))
        target.set_volume()
        target.voxel_size = size


if __name__ == "__main__":
    main(Path(sys.argv[1]))
