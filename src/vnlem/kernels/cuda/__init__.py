"""The stages as CUDA kernels: one .cu file for each stage, next to a thin wrapper of the same name.

Wrappers take an :class:`~vnlem.kernels.cuda.engine.Engine`: the same code runs on CuPy and, in tests, on a
CPU that stands in for the device.
"""
