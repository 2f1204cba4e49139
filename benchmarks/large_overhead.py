"""What the halo adds to reading and to the work, by method and side of a unit: a table of docs/large.md.

python benchmarks/large_overhead.py
"""

from vnlem.pipeline.recipes import recipe_of
from vnlem.registry import find_halo, find_method, find_work_halo

SIGMA = 0.3  # noise in units of the clean standard deviation; parameters follow it
SIDES = (1024, 2048, 4096)
CASES = {
    "vnlr, fast": ("vnlr", {"profile": "fast"}),
    "vnlr, balanced": ("vnlr", {"profile": "balanced"}),
    "vnlr, quality": ("vnlr", {"profile": "quality"}),
    "vnlr, fast, so2": ("vnlr", {"profile": "fast", "group": "so2"}),
    "vnlem": ("vnlem", {}),
    "nlem": ("nlem", {}),
    "nlm": ("nlm", {}),
}


def main() -> None:
    heads = " | ".join(f"{side}: read, work" for side in SIDES)
    print(f"| method | halo | {heads} |\n|---|---|{'---|' * len(SIDES)}")
    for name, (method, given) in CASES.items():
        params = recipe_of(find_method(method), **given).resolve(SIGMA)
        halos = [find(method)(params) for find in (find_halo, find_work_halo)]
        cells = [", ".join(f"{(1 + 2 * halo / side) ** 2 - 1:.0%}" for halo in halos) for side in SIDES]
        print(f"| {name} | {halos[0]} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
