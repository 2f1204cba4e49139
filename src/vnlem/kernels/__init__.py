"""Kernels by backend: arrays in, arrays out."""
