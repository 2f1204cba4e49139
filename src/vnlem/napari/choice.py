"""The choice of a layer, and the meaning of its dimensions, which the user may correct."""

from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

from napari.layers import Image
from napari.viewer import Viewer
from qtpy.QtCore import Signal
from qtpy.QtWidgets import QComboBox

from vnlem.napari.layers import is_result, layer_axes, pixels, unwrapped


class LayerChoice(QComboBox):
    """The image layers of a viewer. A layer stays chosen when it is renamed or others come and go."""

    chosen = Signal()

    def __init__(self, viewer: Viewer, offers: Callable[[Any], bool]) -> None:
        super().__init__()
        self._viewer, self._offers = viewer, offers
        self._layers: list[Image] = []
        self.currentIndexChanged.connect(lambda _: self.chosen.emit())

    def layer(self) -> Image | None:
        """The chosen layer."""
        place = self.currentIndex()
        return self._layers[place] if 0 <= place < len(self._layers) else None

    def list_layers(self, *_: object) -> None:
        """Read the layer list again."""
        layers = [unwrapped(layer) for layer in self._viewer.layers if self._offers(layer)]
        before, active = self.layer(), unwrapped(self._viewer.layers.selection.active)
        wanted = next((layer for layer in (before, active, *layers[-1:]) if layer in layers), None)
        blocked = self.blockSignals(True)
        self.clear()
        self._layers = layers
        self.addItems([layer.name for layer in layers])
        if wanted is not None:
            self.setCurrentIndex(layers.index(wanted))
        self.blockSignals(blocked)
        if wanted is not before:
            self.chosen.emit()

    def follow_selection(self, *_: object) -> None:
        """Choose what is selected in the layer list, unless it is a result."""
        selected = self.selected()
        if selected and self.layer() not in selected:
            self.setCurrentIndex(self._layers.index(selected[0]))

    def selected(self) -> list[Image]:
        """The offered layers that are selected in the layer list and are not results."""
        selection = self._viewer.layers.selection
        return [layer for layer in self._layers if layer in selection and not is_result(layer)]

    def targets(self) -> list[Image]:
        """The layers to denoise: those selected if the chosen one is among them, else the chosen one."""
        chosen, selected = self.layer(), self.selected()
        if chosen is None:
            return []
        return selected if chosen in selected else [chosen]


class AxesMemory:
    """The letters of each layer's dimensions: as the user typed them, else as they are guessed."""

    def __init__(self) -> None:
        self._typed: WeakKeyDictionary[Image, str] = WeakKeyDictionary()

    def of(self, layer: Image) -> str:
        """The letters of one layer."""
        typed = self._typed.get(layer, "")
        return typed if len(typed) == len(pixels(layer).shape) else layer_axes(layer)

    def keep(self, layer: Image, axes: str) -> None:
        """Keep the letters that the user typed for a layer."""
        self._typed[layer] = axes.strip().upper()
