"""Where the paper's methods gain: images of a bench run in quarters, from hard to smooth.

    python benchmarks/gain_by_smoothness.py DIR/results.csv

The smoothness of an image is judged by the SNR that VNLR reaches on it. Needs a run of `vnlem bench` with
nlem, vnlem, vnlem-dd and vnlr at the paper's protocol.
"""

import csv
import sys
from pathlib import Path

import numpy as np
from scipy.stats import spearmanr

PAIRS = (("vnlem", "nlem"), ("vnlem-dd", "vnlem"))


def read(path: Path) -> dict[str, np.ndarray]:
    """Method -> (images, 2), SNR in dB and FSIM times 100."""
    found: dict[str, dict[str, tuple[float, float]]] = {}
    with path.open(newline="") as file:
        next(file)  # the version
        for row in csv.DictReader(file):
            found.setdefault(row["method"], {})[row["image"]] = (float(row["snr"]), 100 * float(row["fsim"]))
    images = sorted(set.intersection(*(set(of_method) for of_method in found.values())))
    return {method: np.array([values[image] for image in images]) for method, values in found.items()}


def main() -> None:
    values = read(Path(sys.argv[1]))
    smooth = values["vnlr"][:, 0]
    headings = [f"{a} less {b}: {measure}" for a, b in PAIRS for measure in ("SNR dB", "FSIM x100")]
    print("| VNLR's SNR | images | " + " | ".join(headings) + " |")
    print("|---|---:|" + "---:|" * len(headings))
    for quarter in np.array_split(np.argsort(smooth), 4):
        means = [(values[a] - values[b])[quarter].mean(axis=0) for a, b in PAIRS]
        cells = " | ".join(f"{value:+.2f}" for pair in means for value in pair)
        print(f"| {smooth[quarter[0]]:.1f} to {smooth[quarter[-1]]:.1f} dB | {len(quarter)} | {cells} |")
    ranks = [
        spearmanr(smooth, (values[a] - values[b])[:, measure]).statistic
        for a, b in PAIRS
        for measure in (0, 1)
    ]
    print("| rank correlation | | " + " | ".join(f"{rank:+.2f}" for rank in ranks) + " |")


if __name__ == "__main__":
    main()
