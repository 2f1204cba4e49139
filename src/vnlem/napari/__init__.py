"""The napari plugin: one widget, two quick commands, sample data.

napari finds it through ``napari.yaml``. `settings`, `axes`, `pages` and `noise` know neither Qt nor napari;
`layers` reads and describes layers; `task`, `widget`, `commands` and `samples` are what napari calls. Qt
itself is never a dependency of vnlem: napari brings one.
"""
