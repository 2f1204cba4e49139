"""Numba kernels: arrays in, arrays out. Validation, allocation policy and files live elsewhere."""
