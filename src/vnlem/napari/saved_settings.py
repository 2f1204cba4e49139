"""The settings of the widget, kept from one session to the next."""

import json
from dataclasses import asdict, fields, replace

from qtpy.QtCore import QSettings

from vnlem.napari.settings import Settings

# Numbers belong to one image or camera: kept, they would be wrong for the next image.
_OF_ONE_IMAGE = ("sigma", "gain", "offset", "read_noise", "coils", "looks")


def remember(settings: Settings) -> None:
    """Keep what was chosen; the numbers of the noise are not kept."""
    kept = {name: value for name, value in asdict(settings).items() if name not in _OF_ONE_IMAGE}
    _store().setValue("settings", json.dumps(kept))


def remembered() -> Settings:
    """What was chosen last; the defaults if nothing was, or if it cannot be read."""
    try:
        kept = json.loads(str(_store().value("settings", "{}")))
    except ValueError:
        return Settings()
    known = {field.name for field in fields(Settings)} - set(_OF_ONE_IMAGE)
    if not isinstance(kept, dict):
        return Settings()
    return replace(Settings(), **{name: value for name, value in kept.items() if name in known})


def _store() -> QSettings:
    return QSettings(QSettings.Format.IniFormat, QSettings.Scope.UserScope, "vnlem", "napari")
