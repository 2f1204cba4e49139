"""Which patches belong together: nearest neighbours under the rotation-invariant distance."""
