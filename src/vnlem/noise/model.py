"""NoiseModel: the noise of an image, how to whiten it, and how to describe it in words."""

import os
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vnlem.noise.components import OPPONENT, from_components, to_components
from vnlem.noise.correlated import FLOOR, Spectrum
from vnlem.noise.curve import Curve
from vnlem.noise.maps import PixelMaps, relative
from vnlem.noise.poisson_gaussian import LARGEST, GainModel, check_model
from vnlem.noise.rician import check_rician
from vnlem.noise.sensor import check_sensor
from vnlem.noise.speckle import check_speckle
from vnlem.pipeline import checks
from vnlem.pipeline.image import Planes, to_planes
from vnlem.pipeline.regions import Region

Float = NDArray[np.float64]

# Every component has at least this share of the noise of the noisiest: a grey picture stored as RGB has
# colours without noise, and this avoids a division by zero.
LEAST_STRENGTH = 1e-3
LEAST_RISE = 1e-3  # of a curve, as a share: below this it is one level


@dataclass(frozen=True, repr=False)
class NoiseModel:
    """The noise of an image, estimated by :func:`vnlem.estimate_noise` or given.

    Parameters
    ----------
    curves : tuple of Curve
        Variance against brightness: one curve, or one for each channel.
    spectra : tuple of Spectrum
        Power against frequency: one spectrum, or one for each component. Components are the channels; for
        three channels they are brightness, red against blue, and green against both.
    strengths : tuple of float
        Variance of each component of the stabilised image: one if channels have independent noise.
    confidence : float
        0 to 1: how certain the estimate is; 1 for a given model.
    doubt : str
        What else the noise may be, if another model was about as likely; otherwise empty.
    maps : PixelMaps, optional
        What differs from pixel to pixel: lines, the pixels of a sensor, the strength of the noise.

    Examples
    --------
    >>> NoiseModel.white(5.0)
    <NoiseModel: white noise, sigma 5>
    >>> NoiseModel.camera(gain=2.0, read_noise=3.0).kind
    'poisson-gaussian'
    """

    curves: tuple[Curve, ...]
    spectra: tuple[Spectrum, ...] = (Spectrum.white(),)
    strengths: tuple[float, ...] = (1.0,)
    confidence: float = 1.0
    doubt: str = ""
    maps: PixelMaps | None = None

    @classmethod
    def white(cls, sigma: float, confidence: float = 1.0, doubt: str = "") -> "NoiseModel":
        """White noise of one standard deviation."""
        sigma = checks.real("sigma", sigma, 0, LARGEST)
        return cls((Curve((0.0,), (sigma**2,)),), confidence=confidence, doubt=doubt)

    @classmethod
    def camera(
        cls, gain: ArrayLike, offset: ArrayLike = 0.0, read_noise: ArrayLike = 0.0, confidence: float = 1.0
    ) -> "NoiseModel":
        """Photon and read noise: pixel = offset + gain * Poisson(photons) + Normal(0, read_noise^2).

        Each may be a map (H, W), as sCMOS cameras are calibrated; infinite read noise marks a defect.

        Examples
        --------
        >>> NoiseModel.camera(np.full((4, 4), 2.0), 100.0, 3.0).kind
        'poisson-gaussian with maps'
        """
        if max(map(np.ndim, (gain, offset, read_noise))) == 0:
            return cls((Curve.of_camera(check_model(gain, offset, read_noise)),), confidence=confidence)
        sensor = check_sensor(gain, offset, read_noise)
        return cls((Curve.of_camera(sensor.usual),), confidence=confidence, maps=PixelMaps(sensor=sensor))

    @classmethod
    def field(cls, sigma: ArrayLike, confidence: float = 1.0) -> "NoiseModel":
        """Noise without correlation whose standard deviation is a map (H, W).

        Examples
        --------
        >>> NoiseModel.field(np.linspace(5, 30, 64 * 64).reshape(64, 64))
        <NoiseModel: white noise that varies over the image, sigma 5 to 30>
        """
        values = checks.finite("sigma", sigma)
        if values.ndim != 2 or not (values > 0).all():
            got = f"shape {values.shape} and values from {values.min():g} on"
            raise ValueError(f"sigma must be a map (height, width) of numbers larger than 0, got {got}")
        level, own = relative(values)
        return replace(cls.white(level, confidence), maps=PixelMaps(sigma=own))

    @classmethod
    def rician(cls, sigma: float, coils: int = 1, confidence: float = 1.0, doubt: str = "") -> "NoiseModel":
        """Noise of magnitudes (MRI): sigma of the real and imaginary parts; several coils: non-central chi.

        Examples
        --------
        >>> NoiseModel.rician(2.0)
        <NoiseModel: Rician noise of magnitudes, sigma 2>
        """
        return cls((Curve.of_law(check_rician(sigma, coils)),), confidence=confidence, doubt=doubt)

    @classmethod
    def speckle(
        cls, looks: float, domain: str = "intensity", unit: float = 1.0, least: float = 0.0
    ) -> "NoiseModel":
        """Speckle with a number of looks, of an intensity, an amplitude or a logarithm (units per e-fold).

        Examples
        --------
        >>> NoiseModel.speckle(4).kind
        'speckle'
        """
        return cls((Curve.of_law(check_speckle(looks, domain, unit, least)),))

    @property
    def kind(self) -> str:
        """What the noise is.

        One of "white", "poisson-gaussian", "signal-dependent", "rician", "speckle", each of them also with
        " correlated", " with maps" (of a sensor), " with lines"; and "field" if it varies over the image.
        """
        if self.maps is not None:
            first = self.evened.kind if self.maps.sigma is None else "field"
            lines = any(values is not None for _, *known in self.maps.lines for values in known)
            more = (" with maps" if self.maps.sensor is not None else "") + (" with lines" if lines else "")
            return first + more
        law = self.curves[0].law
        if law is not None:
            return f"{law.name} correlated" if self.is_correlated else law.name
        if self.is_white:
            return "white"
        varying = [curve for curve in self.curves if len(curve.levels) > 1]
        if not varying:
            first = "white" if not self.is_correlated else ""
        else:
            first = "poisson-gaussian" if all(curve.gain for curve in varying) else "signal-dependent"
        return f"{first} correlated".strip() if self.is_correlated else first

    @property
    def is_white(self) -> bool:
        """Whether one sigma describes it."""
        return (
            self.curves[0].law is None
            and self.maps is None
            and len({curve.variances for curve in self.curves}) == 1
            and len(self.curves[0].levels) == 1
            and not self.is_correlated
            and len(set(self.strengths)) == 1
        )

    @property
    def evened(self) -> "NoiseModel":
        """The noise after correction by the maps: the same everywhere."""
        return self if self.maps is None else replace(self, maps=None)

    def part(self, rows: slice, columns: slice) -> "NoiseModel":
        """The noise of a part of the image."""
        return self if self.maps is None else replace(self, maps=self.maps.part(rows, columns))

    @property
    def varies(self) -> bool:
        """Whether the noise depends on the brightness."""
        return any(len(curve.levels) > 1 for curve in self.curves)

    @property
    def is_correlated(self) -> bool:
        """Whether neighbouring pixels share noise."""
        return not all(spectrum.is_white for spectrum in self.spectra)

    @property
    def ties_channels(self) -> bool:
        """Whether channels share noise, as those of a colour camera do."""
        return len(set(self.strengths)) > 1 or len(self.spectra) > 1

    @property
    def sigma(self) -> float:
        """The standard deviation of white noise; for other noise that at the middle of its curve."""
        middle = [curve.variance(np.mean(curve.levels)) for curve in self.curves]
        return float(np.sqrt(np.mean(middle) * np.mean(self.strengths)))

    @property
    def gain(self) -> GainModel | None:
        """Gain, offset and read noise if the first channel has the noise of a photon counter."""
        return self.curves[0].gain

    def variance(self, brightness: ArrayLike, channel: int = 0) -> Float:
        """Noise variance of a channel's pixels at a brightness."""
        curve = self.curves[min(channel, len(self.curves) - 1)]
        return curve.variance(brightness) * self._share(channel)

    def _share(self, channel: int) -> float:
        """Variance of a stabilised channel: its part of each component."""
        if len(self.strengths) != 3:
            return self.strengths[min(channel, len(self.strengths) - 1)]
        return float(OPPONENT[:, channel] ** 2 @ np.asarray(self.strengths))

    def correlation(self, reach: int = 8, component: int = 0) -> Float:
        """Correlation of the noise of two pixels 0 to `reach` rows and columns apart."""
        return self.spectra[min(component, len(self.spectra) - 1)].correlation(reach)

    def with_share(self, share: float) -> "NoiseModel":
        """The noise of share * image + (1 - share) * what is known of the clean image.

        Examples
        --------
        >>> NoiseModel.camera(gain=2.0, offset=10.0, read_noise=3.0).with_share(0.5).gain
        GainModel(gain=0.5, offset=10.0, read_noise=1.5)
        """
        return replace(self, curves=tuple(curve.with_share(share) for curve in self.curves))

    def halved(self, times: int) -> "NoiseModel":
        """The noise of the image halved this often.

        Examples
        --------
        >>> NoiseModel.camera(gain=4.0).halved(1).gain.gain
        1.0
        """
        return replace(self, curves=tuple(curve.halved(times) for curve in self.curves))

    def check(self, planes: Planes) -> None:
        """Refuse an image that this model cannot describe."""
        channels = len(planes.data)
        for name, count in (
            ("curves", len(self.curves)),
            ("spectra", len(self.spectra)),
            ("strengths", len(self.strengths)),
        ):
            if count not in (1, channels):
                raise ValueError(
                    f"the noise model has {count} {name} and the image {channels} channels; "
                    "estimate the noise on an image of the same kind"
                )
        if self.maps is not None:
            self.maps.check(*planes.data.shape[1:])
        low, high = float(planes.data.min()), float(planes.data.max())
        for curve in self.curves:
            if curve.law is not None:
                curve.law.check(low)
                continue
            # A line that hardly rises is white noise, whatever its gain.
            if max(curve.variances) <= (1 + LEAST_RISE) * min(curve.variances):
                continue
            first, last = curve.levels[0], curve.levels[-1]
            span = max(last - first, 1e-300)
            if high < first - 10 * span or low > last + 10 * span or high - low > 1000 * span:
                raise ValueError(
                    f"the noise model was made for values from {first:g} to {last:g} and the image has "
                    f"{low:g} to {high:g}; was it rescaled or stored with another dtype? "
                    "Estimate the noise on this image's own values"
                )

    def seen_in(self, planes: Float) -> tuple[Float, Float]:
        """Planes (C, H, W) whose noise is not correlated, and its root mean square in each of them.

        Examples
        --------
        >>> NoiseModel.camera(gain=2.0).seen_in(np.full((1, 4, 4), 8.0))[1].tolist()
        [4.0]
        """
        if self.is_correlated:
            return self.stabilise(planes), np.ones(len(planes))
        variances = [self.variance(plane, number).mean() for number, plane in enumerate(planes)]
        return planes, np.sqrt(variances)

    def stabilise(self, planes: Float, floor: float = FLOOR, region: Region | None = None) -> Float:
        """Planes (C, H, W) whose noise is white, independent between channels, of standard deviation one.

        With correlated noise only frequencies with more power than `floor` times the mean are equalised. If
        planes are the part of an image that a region reads, the result is what it writes. Maps are for whole
        images.
        """
        if self.maps is not None:
            return self.evened.stabilise(self.maps.enter(planes), floor)
        curves = each(self.curves, len(planes))
        stable = np.stack([curve.stabilise(plane) for curve, plane in zip(curves, planes, strict=True)])
        parts = to_components(stable)
        filters = each(self.spectra, len(planes))
        scales = self._scales(len(planes))
        white = [
            spectrum.whiten(part, floor, region) / scale
            for spectrum, part, scale in zip(filters, parts, scales, strict=True)
        ]
        return from_components(np.stack(white))

    def unstabilise(self, planes: Float, region: Region | None = None) -> Float:
        """Undo :meth:`stabilise` for denoised planes; without bias where the transform is curved.

        Line offsets and the differences of a sensor's pixels are not restored.
        """
        if self.maps is not None:
            return self.maps.leave(self.evened.unstabilise(planes))
        filters = each(self.spectra, len(planes))
        scales = self._scales(len(planes))
        parts = [
            spectrum.colour(part * scale, region)
            for spectrum, part, scale in zip(filters, to_components(planes), scales, strict=True)
        ]
        curves = each(self.curves, len(planes))
        stable = from_components(np.stack(parts))
        return np.stack([curve.unstabilise(plane) for curve, plane in zip(curves, stable, strict=True)])

    def _scales(self, count: int) -> Float:
        strengths = np.asarray(each(self.strengths, count))
        return np.asarray(np.sqrt(np.maximum(strengths, LEAST_STRENGTH * strengths.max())))

    def __repr__(self) -> str:
        # A notebook shows this; the numbers of curves and spectra would fill a page.
        return f"<NoiseModel: {self.describe()}>"

    def _repr_html_(self) -> str:
        from vnlem.noise.html import noise_html

        return noise_html(self)

    def describe(self) -> str:
        """What was found, in words."""
        from vnlem.noise.words import describe

        return describe(self)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model as JSON, to be read by :meth:`load`."""
        from vnlem.noise.model_file import save

        save(self, path)

    def to_dict(self) -> dict[str, Any]:
        """The model as plain lists, numbers and text.

        Examples
        --------
        >>> model = NoiseModel.white(2.0)
        >>> NoiseModel.from_dict(model.to_dict()) == model
        True
        """
        from vnlem.noise.model_file import as_dict

        return as_dict(self)

    @classmethod
    def from_dict(cls, values: Any) -> "NoiseModel":
        """A model from the output of :meth:`to_dict`; anything else is refused with the reason."""
        from vnlem.noise.model_file import from_dict

        return from_dict(values)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "NoiseModel":
        """Read a model that :meth:`save` wrote."""
        from vnlem.noise.model_file import load

        return load(path)

    def draw(
        self,
        path: str | os.PathLike[str] | None = None,
        image: ArrayLike | None = None,
        channel_axis: int | None = None,
    ) -> Any:
        """Draw variance against brightness, correlation and spectrum; needs matplotlib.

        Parameters
        ----------
        path : path, optional
            Where to write the picture.
        image : array_like, optional
            The noise of its blocks is drawn with the curve.
        channel_axis : int, optional
            The axis of the channels of `image`.

        Returns
        -------
        matplotlib Figure
        """
        from vnlem.noise.draw import draw

        return draw(self, path, None if image is None else to_planes(image, channel_axis).data)


def each(values: tuple[Any, ...], count: int) -> tuple[Any, ...]:
    """One value per channel, from one for all or one for each."""
    return values * count if len(values) == 1 else values
