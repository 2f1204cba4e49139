"""What the halo adds to reading and to the work, by method and side of a unit: a table of docs/large.md.

python benchmarks/large_overhead.py
"""

import numpy as np

from vnlem.noise.correlated import SIDE, Spectrum
from vnlem.noise.model import NoiseModel
from vnlem.pipeline.scale import Scale
from vnlem.plan import Group, Plan, Round, Size
from vnlem.registry import find_method

SIGMA = 0.3  # noise in units of the clean standard deviation; parameters follow it
SIDES = (1024, 2048, 4096)
CORRELATED = "the same, correlated noise"
FEW_PHOTONS = "few photons"  # two rounds
CASES = {
    "vnlr, fast": ("vnlr", 1, {"profile": "fast"}),
    "vnlr, balanced": ("vnlr", 1, {"profile": "balanced"}),
    "vnlr, quality": ("vnlr", 1, {"profile": "quality"}),
    "vnlr, fast, so2": ("vnlr", 1, {"profile": "fast", "group": "so2"}),
    "vnlr, fast, three scales": ("vnlr", 3, {"profile": "fast"}),
    "vnlr, balanced, three scales": ("vnlr", 3, {"profile": "balanced"}),
    CORRELATED: ("vnlr", 3, {"profile": "balanced"}),
    "vnlr, quality, three scales": ("vnlr", 3, {"profile": "quality"}),
    "vnlr, best, three scales": ("vnlr", 3, {"profile": "best"}),
    "vnlr, fast, few photons": ("vnlr", 1, {"profile": "fast"}),
    "vnlr, fast, three scales, few photons": ("vnlr", 3, {"profile": "fast"}),
    "vnlr, balanced, three scales, few photons": ("vnlr", 3, {"profile": "balanced"}),
    "vnlem": ("vnlem", 1, {}),
    "nlem": ("nlem", 1, {}),
    "nlm": ("nlm", 1, {}),
}


def plan_of(name: str, method: str, scales: int, given: dict) -> Plan:
    """The plan of a method; at half the size there is half the noise."""
    found = find_method(method)
    few = FEW_PHOTONS in name
    sizes = []
    for number in range(scales):
        sigma = SIGMA / 2**number
        params = found.resolve(sigma, 2, **found.with_defaults(given))
        members = found.members(params)
        halo = max(map(found.halo, members))
        work = max(map(found.work_halo or found.halo, members))
        group = Group((0,), Scale(0.0, 1.0, sigma), params, halo, work)
        sizes.append(Size((group,), noise=NoiseModel.camera(1.0) if few else None))
    noise = NoiseModel.camera(1.0) if few else NoiseModel.white(SIGMA)
    if name == CORRELATED:
        noise = NoiseModel(noise.curves, (Spectrum.of(1 + np.arange(SIDE)[:, None] + np.zeros(SIDE)),))
    return Plan(method, "fast", "cpu", noise, (Round(0, tuple(sizes)),) * (2 if few else 1))


def main() -> None:
    heads = " | ".join(f"{side}: read, work" for side in SIDES)
    print(f"| method | halo | {heads} |\n|---|---|{'---|' * len(SIDES)}")
    for name, case in CASES.items():
        plan = plan_of(name, *case)
        halo = plan.halo
        cells = [
            ", ".join(f"{(1 + 2 * by / side) ** 2 - 1:.0%}" for by in (halo, plan.work_halo(side)))
            for side in SIDES
        ]
        print(f"| {name} | {halo} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
