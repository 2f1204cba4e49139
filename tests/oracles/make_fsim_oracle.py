"""Compute the FSIM of every case with piq and freeze the values in fsim.json.

Run as ``python -m oracles.make_fsim_oracle`` in the folder ``tests``, with the extra `oracle` installed.
"""

import json
from pathlib import Path

from oracles.fsim_cases import cases
from oracles.piq_fsim import piq_fsim

FROZEN = Path(__file__).with_name("fsim.json")


def main() -> None:
    """Write the file."""
    from importlib.metadata import version

    values = {name: round(piq_fsim(clean, other), 6) for name, (clean, other) in cases().items()}
    FROZEN.write_text(json.dumps({"piq": version("piq"), "fsim": values}, indent=2) + "\n")


if __name__ == "__main__":
    main()
