"""Diffusion maps of the patch graph: the graph, its stencil, the eigen-solver and the map itself."""
