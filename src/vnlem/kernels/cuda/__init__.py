"""The stages as CUDA kernels: one .cu file for each stage with a thin wrapper of the same name beside it.

Wrappers take an :class:`~vnlem.kernels.cuda.engine.Engine`, so that the same code runs on CuPy and, in tests,
on a processor that plays the device.
"""
