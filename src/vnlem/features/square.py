"""Square patches: what white noise does to their distances."""

from vnlem.pipeline import checks
from vnlem.pipeline.sigma import check_sigma


def noise_bandwidth(q: int, sigma: float, ndim: int = 2) -> float:
    """Bandwidth of non-local means that follows from the variance lemma: (8 n)^(1/4) sigma for n pixels.

    Parameters
    ----------
    q : int
        Patch size, odd.
    sigma : float
        Noise level.
    ndim : int
        2 for images, where a patch has q^2 pixels; 1 for signals, where it has q samples.

    Returns
    -------
    float
        For weights exp(-(d^2 - 2 sigma^2 n) / bandwidth^2): the squared bandwidth is the standard deviation
        sqrt(8 n) sigma^2 of the squared distance of two patches that differ only by noise.

    Examples
    --------
    >>> [round(noise_bandwidth(q, 1.0), 2) for q in (3, 5, 7)]
    [2.91, 3.76, 4.45]
    """
    pixels = checks.odd("q", q) ** checks.whole("ndim", ndim)
    return float((8 * pixels) ** 0.25 * check_sigma(sigma))
