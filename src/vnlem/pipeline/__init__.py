"""What every method shares and no science: checks, images, units, tiles, workers, progress."""
