"""What all methods share, without science: checks, images, units, tiles, workers, progress."""
