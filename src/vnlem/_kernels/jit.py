"""The one way kernels are compiled."""

from numba import njit

# nogil: tiles run on Python threads. fastmath without nnan/ninf: reductions vectorise, NaN and infinity
# keep their meaning. cache: a user pays for compilation once per machine.
kernel = njit(
    nogil=True,
    cache=True,
    error_model="numpy",
    fastmath={"reassoc", "contract", "nsz", "arcp"},
)

# Small functions that must disappear into the loop that calls them, or it will not vectorise.
inlined = njit(
    nogil=True,
    cache=True,
    error_model="numpy",
    fastmath={"reassoc", "contract", "nsz", "arcp"},
    inline="always",
)
