"""Infrastructure shared by all methods: checks, images, units, tiles, workers, progress."""
