"""The paper's lemmas and theorems as functions, their Monte Carlo checks, and advice on the patch size.

``docs/theory.md`` has the formulas, the figures and what is proved. Where the paper has a slip, the corrected
and the printed form are both available by name: ``docs/paper-notes.md``.
"""

from vnlem.features.square import noise_bandwidth
from vnlem.theory.gradient import (
    GradientBound,
    GradientMoments,
    gradient_bound,
    gradient_kernel,
    gradient_moments,
)
from vnlem.theory.lag import lag_map
from vnlem.theory.moments import DistanceMoments, distance_moments
from vnlem.theory.neighbors import (
    NeighborBounds,
    NeighborProbabilities,
    balance_ratio,
    neighbor_bounds,
    neighbor_probabilities,
)
from vnlem.theory.orientation_noise import (
    OrientationBound,
    OrientationErrors,
    OrientationPatch,
    arc_strengths,
    orientation_bound,
    orientation_counterexample,
    orientation_errors,
    orientation_feature,
    orientation_margin,
)
from vnlem.theory.overlap import OverlapBounds, OverlapSets, overlap_bounds, overlap_sets
from vnlem.theory.patch_size import PatchSizeAdvice, suggest_patch_size
from vnlem.theory.recovery import Recovery, neighbor_recovery
from vnlem.theory.simulate import (
    Check,
    check_distance_moments,
    check_gradient_moments,
    check_neighbor_bounds,
    random_image,
    run_checks,
    simulate_distances,
    simulate_gradients,
)

__all__ = [
    "Check",
    "DistanceMoments",
    "GradientBound",
    "GradientMoments",
    "NeighborBounds",
    "NeighborProbabilities",
    "OrientationBound",
    "OrientationErrors",
    "OrientationPatch",
    "OverlapBounds",
    "OverlapSets",
    "PatchSizeAdvice",
    "Recovery",
    "arc_strengths",
    "balance_ratio",
    "check_distance_moments",
    "check_gradient_moments",
    "check_neighbor_bounds",
    "distance_moments",
    "gradient_bound",
    "gradient_kernel",
    "gradient_moments",
    "lag_map",
    "neighbor_bounds",
    "neighbor_probabilities",
    "neighbor_recovery",
    "noise_bandwidth",
    "orientation_bound",
    "orientation_counterexample",
    "orientation_errors",
    "orientation_feature",
    "orientation_margin",
    "overlap_bounds",
    "overlap_sets",
    "random_image",
    "run_checks",
    "simulate_distances",
    "simulate_gradients",
    "suggest_patch_size",
]
