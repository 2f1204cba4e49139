"""What the halo adds to reading and to the work, by method and side of a unit: a table of docs/large.md.

python benchmarks/large_overhead.py
"""

from vnlem.large.rounds import RoundOfParts, reach_of_rounds, work_of_rounds
from vnlem.large.scales import Size
from vnlem.pipeline.recipes import recipe_of

from vnlem.noise import tiled
from vnlem.noise.model import NoiseModel
from vnlem.pipeline.scale import Scale
from vnlem.registry import find_halo, find_method, find_work_halo

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
    "vnlr, fast, few photons": ("vnlr", 1, {"profile": "fast"}),
    "vnlr, fast, three scales, few photons": ("vnlr", 3, {"profile": "fast"}),
    "vnlr, balanced, three scales, few photons": ("vnlr", 3, {"profile": "balanced"}),
    "vnlem": ("vnlem", 1, {}),
    "nlem": ("nlem", 1, {}),
    "nlm": ("nlm", 1, {}),
}


def sizes_of(method: str, scales: int, given: dict, noise: NoiseModel | None) -> tuple[Size, ...]:
    """What a method takes at each scale; half the size has half the noise."""
    recipe = recipe_of(find_method(method), **given)
    found = []
    for number in range(scales):
        params = recipe.resolve(SIGMA / 2**number)
        halos = (find(method)(params) for find in (find_halo, find_work_halo))
        found.append(Size(Scale(0.0, 1.0, SIGMA / 2**number), params, *halos, noise=noise))
    return tuple(found)


def main() -> None:
    heads = " | ".join(f"{side}: read, work" for side in SIDES)
    print(f"| method | halo | {heads} |\n|---|---|{'---|' * len(SIDES)}")
    for name, case in CASES.items():
        few = FEW_PHOTONS in name
        sizes = sizes_of(*case, NoiseModel.camera(1.0) if few else None)
        rounds = (RoundOfParts(0, sizes),) * (2 if few else 1)
        filters = tiled.HALO if name == CORRELATED else 0
        halo = reach_of_rounds(rounds, filters) + filters
        cells = [
            ", ".join(
                f"{(1 + 2 * by / side) ** 2 - 1:.0%}" for by in (halo, work_of_rounds(rounds, side, filters))
            )
            for side in SIDES
        ]
        print(f"| {name} | {halo} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
