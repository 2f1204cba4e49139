"""Time, memory and traffic of a run on a cluster, from figures measured on one machine.

    python benchmarks/large_plan.py                   the table of docs/large.md
    python benchmarks/large_plan.py --nodes 20 --rate 1.4

Every assumption is an option, and is printed with the result.
"""

import argparse
import math

# Core seconds and memory as benchmarks/large_rate.py printed them for VNLR's profile "fast" at 8192 x 8192 on
# a two-core virtual machine; halos as benchmarks/large_overhead.py prints them. The rest is assumed.
DEFAULTS = {
    "shape": (1000, 31623, 31623),  # slices of a light-sheet set, 1.0 Tpixel of uint16
    "bytes_per_pixel": 2,
    "compression": 0.7,  # stored bytes per byte, of noisy data; denoised data take less
    "unit": 2048,
    "halo": 139,
    "work_halo": 79,
    "core_seconds_per_megapixel": 2.9,  # in memory, without any halo
    "worker_memory_mb": 700,  # measured: 540
    "nodes": 100,
    "cores": 32,
    "worker_cores": 4,
    "node_bandwidth_mb": 500,
    "shared_bandwidth_mb": 10000,
    "lost_nodes": 2,
}


def plan(values: dict) -> list[tuple[str, str]]:
    """The rows of the table."""
    slices, height, width = values["shape"]
    pixels = slices * height * width
    unit, halo = values["unit"], values["halo"]
    per_slice = math.ceil(height / unit) * math.ceil(width / unit)
    units = slices * per_slice
    reading = (1 + 2 * halo / unit) ** 2
    working = (1 + 2 * values["work_halo"] / unit) ** 2
    core_seconds = pixels * working / 1e6 * values["core_seconds_per_megapixel"]
    workers_per_node = values["cores"] // values["worker_cores"]
    workers = values["nodes"] * workers_per_node
    rounds = math.ceil(units / workers)
    unit_seconds = core_seconds / units / values["worker_cores"]
    compute = rounds * unit_seconds
    stored = values["bytes_per_pixel"] * values["compression"]
    # The finest level is read with its halo and written; the pyramid adds a third to both.
    read = pixels * stored * (reading + 4 / 3)
    written = pixels * stored * 4 / 3
    traffic = (read + written) / 1e6
    transfer = max(
        traffic / values["shared_bandwidth_mb"], traffic / values["nodes"] / values["node_bandwidth_mb"]
    )
    lost = values["lost_nodes"] * workers_per_node * unit_seconds
    return [
        ("pixels", f"{pixels / 1e12:.2f} T"),
        (
            "units",
            f"{units:,} of {unit} x {unit}; halo: {reading - 1:.0%} more read, {working - 1:.0%} more work",
        ),
        ("work", f"{core_seconds / 3600:,.0f} core hours"),
        ("workers", f"{workers} of {values['worker_cores']} cores, a unit takes each {unit_seconds:.1f} s"),
        ("computing", f"{compute / 3600:.1f} h in {rounds} rounds"),
        ("read", f"{read / 1e12:.2f} TB"),
        ("written", f"{written / 1e12:.2f} TB"),
        ("transfers", f"{transfer / 3600:.1f} h if nothing were computed meanwhile"),
        ("average traffic", f"{traffic / compute:,.0f} MB/s for all nodes together"),
        ("memory", f"{workers_per_node * values['worker_memory_mb'] / 1000:.1f} GB on each node"),
        ("files", f"{units:,} shards at the finest level, {units:,} markers while it runs"),
        ("scheduler", f"{units / compute:.1f} tasks a second, {2 * workers} with it at a time"),
        ("nodes lost", f"{values['lost_nodes']} cost {lost:.0f} worker seconds: the units they were at"),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name, value in DEFAULTS.items():
        if isinstance(value, tuple):
            parser.add_argument(f"--{name}", type=int, nargs=3, default=value)
        else:
            parser.add_argument(f"--{name.replace('_', '-')}", type=type(value), default=value)
    values = vars(parser.parse_args())
    print("| assumed | |\n|---|---|")
    for name, value in values.items():
        shown = " x ".join(map(str, value)) if isinstance(value, list | tuple) else value
        print(f"| {name.replace('_', ' ')} | {shown} |")
    print("\n| follows | |\n|---|---|")
    for name, text in plan(values):
        print(f"| {name} | {text} |")


if __name__ == "__main__":
    main()
