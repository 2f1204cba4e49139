"""Which patches belong together: nearest neighbours of a pixel, and groups of patches."""
