"""A noise model as a notebook shows it: a sentence, and the noise against brightness as a drawing."""

import html
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from vnlem.noise.model import NoiseModel

WIDTH, HEIGHT = 320, 130
LEFT, RIGHT, TOP, BOTTOM = 52, 8, 8, 34
_COLOURS = ("#d9730d", "#2a78c8", "#3a9150", "#8a4fbd")


def noise_html(model: "NoiseModel") -> str:
    """The model in words; if the noise depends on the brightness, also its curve as inline SVG.

    >>> from vnlem.noise.model import NoiseModel
    >>> noise_html(NoiseModel.white(5.0))
    '<div><b>Noise</b>: white noise, sigma 5</div>'
    """
    words = html.escape(model.describe())
    return f"<div><b>Noise</b>: {words}{_curve(model) if model.varies else ''}</div>"


def _curve(model: "NoiseModel") -> str:
    low, high = model.curves[0].levels[0], model.curves[0].levels[-1]
    levels = np.linspace(low, high, 80)
    curves = [np.sqrt(model.variance(levels, channel)) for channel in range(len(model.curves))]
    top = 1.1 * max(float(curve.max()) for curve in curves) or 1.0
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM
    x = LEFT + (right - LEFT) * (levels - low) / (high - low)
    lines = []
    for channel, curve in enumerate(curves):
        y = bottom - (bottom - TOP) * curve / top
        points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, y, strict=True))
        colour = _COLOURS[channel % len(_COLOURS)]
        lines.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>')
    texts = [
        (LEFT - 4, TOP + 8, "end", f"{top:.3g}"),
        (LEFT - 4, bottom, "end", "0"),
        (LEFT, bottom + 13, "start", f"{low:.4g}"),
        (right, bottom + 13, "end", f"{high:.4g}"),
        ((LEFT + right) / 2, bottom + 28, "middle", "brightness"),
    ]
    labels = "".join(
        f'<text x="{a}" y="{b}" text-anchor="{anchor}">{text}</text>' for a, b, anchor, text in texts
    )
    return (
        f'<br><svg width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        'style="font:11px sans-serif;fill:currentColor"><title>noise against brightness</title>'
        f'<path d="M{LEFT},{TOP} V{bottom} H{right}" fill="none" stroke="currentColor"/>'
        f'<text transform="translate(12,{(TOP + bottom) / 2}) rotate(-90)" text-anchor="middle">sigma</text>'
        f"{''.join(lines)}{labels}</svg>"
    )
