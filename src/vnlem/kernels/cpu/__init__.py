"""Kernels in C++, compiled when the package is installed and called through ctypes. See README.md."""
