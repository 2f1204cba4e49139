"""Figures of the paper, drawn with matplotlib (the extra `bench`); one file each."""

from vnlem.figures.cytometry import cytometry_figure
from vnlem.figures.embedding import embedding
from vnlem.figures.example import example_figure
from vnlem.figures.neighbors import neighbors
from vnlem.figures.resolution import resolution_figure

__all__ = ["cytometry_figure", "embedding", "example_figure", "neighbors", "resolution_figure"]
