"""The methods on a CUDA device: the same compositions over the kernels of `vnlem.kernels.cuda`."""
