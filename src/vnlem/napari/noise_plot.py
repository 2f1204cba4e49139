"""A small drawing of the noise: its standard deviation against brightness, over the image's histogram."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from qtpy.QtCore import QPointF, QRectF, QSize, Qt
from qtpy.QtGui import QColor, QPainter, QPen, QPolygonF
from qtpy.QtWidgets import QWidget

from vnlem.noise import NoiseModel

MARGIN_LEFT, MARGIN_BOTTOM, MARGIN = 46, 18, 6


class NoisePlot(QWidget):
    """Noise against brightness, with the shares of brightness behind it."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setMinimumHeight(96)
        self.setToolTip(
            "Standard deviation of the noise against brightness; grey: how often each brightness occurs"
        )
        self._curve: tuple[NDArray[Any], NDArray[Any]] | None = None
        self._shares: NDArray[Any] = np.zeros(0)

    def sizeHint(self) -> QSize:  # noqa: N802 - Qt's name
        """The size it would like."""
        return QSize(220, 110)

    def show_noise(self, noise: NoiseModel | None, page: NDArray[Any] | None) -> None:
        """Draw the noise of a page, or nothing."""
        if noise is None or page is None or page.size == 0:
            self._curve = None
        else:
            values = np.asarray(page, np.float64).ravel()
            values = values[np.isfinite(values)][:: max(1, values.size // 100_000)]
            low, high = np.quantile(values, [0.001, 0.999]) if values.size else (0.0, 1.0)
            high = high if high > low else low + 1.0
            brightness = np.linspace(low, high, 100)
            # Each bin holds the same number of integers, else the bars form a comb.
            whole = np.issubdtype(page.dtype, np.integer)
            width = max(1.0, np.ceil((high - low) / 50)) if whole else (high - low) / 50
            edges = np.arange(low, high + width, width) - (0.5 if whole else 0.0)
            self._shares = np.histogram(values, edges)[0].astype(np.float64)
            self._curve = brightness, np.sqrt(noise.variance(brightness))
        self.update()

    def paintEvent(self, _event: Any) -> None:  # noqa: N802 - Qt's name
        """Draw."""
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        ink = self.palette().windowText().color()
        box = QRectF(
            MARGIN_LEFT, MARGIN, self.width() - MARGIN_LEFT - MARGIN, self.height() - MARGIN - MARGIN_BOTTOM
        )
        if self._curve is not None:
            self._draw(painter, box, ink, *self._curve)
        painter.end()

    def _draw(
        self, painter: QPainter, box: QRectF, ink: QColor, brightness: NDArray[Any], deviation: NDArray[Any]
    ) -> None:
        top = 1.25 * float(deviation.max()) or 1.0
        faint = QColor(ink)
        faint.setAlpha(60)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(faint)
        width = box.width() / max(1, self._shares.size)
        tallest = float(self._shares.max()) if self._shares.size else 1.0
        for number, share in enumerate(self._shares):
            height = box.height() * share / max(tallest, 1.0)
            painter.drawRect(QRectF(box.left() + number * width, box.bottom() - height, width, height))
        painter.setPen(QPen(ink, 1))
        painter.drawLine(box.bottomLeft(), box.bottomRight())
        painter.drawLine(box.bottomLeft(), box.topLeft())
        small = painter.font()
        small.setPointSizeF(max(6.0, 0.8 * small.pointSizeF()))
        painter.setFont(small)
        left = QRectF(0, box.top(), MARGIN_LEFT - 4, box.height())
        painter.drawText(left, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignTop, f"{top:.3g}")
        painter.drawText(left, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter, "noise")
        painter.drawText(left, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignBottom, "0")
        under = QRectF(box.left(), box.bottom() + 2, box.width(), MARGIN_BOTTOM)
        painter.drawText(under, Qt.AlignmentFlag.AlignLeft, f"{brightness[0]:.4g}")
        painter.drawText(under, Qt.AlignmentFlag.AlignHCenter, "brightness")
        painter.drawText(under, Qt.AlignmentFlag.AlignRight, f"{brightness[-1]:.4g}")
        x = box.left() + box.width() * np.linspace(0, 1, brightness.size)
        y = box.bottom() - box.height() * deviation / top
        painter.setPen(QPen(QColor(255, 140, 0), 2))
        painter.drawPolyline(QPolygonF([QPointF(float(a), float(b)) for a, b in zip(x, y, strict=True)]))
