"""The words that parameters take, as types: a type checker sees a misspelt one before it runs."""

from typing import Literal

# How much work VNLR does.
Profile = Literal["best", "quality", "balanced", "fast"]
# How VNLR may move a patch to agree with another.
Group = Literal["identity", "c4", "d4", "so2", "similarity"]
# Parameters that follow the noise, or those of the paper.
Preset = Literal["auto", "paper"]
# What VNLR's result is judged by.
Aim = Literal["fidelity", "perception", "flux"]
