"""Images larger than memory: regions of arrays, zarr and TIFF files, on one machine or on a Dask cluster.

source -> units of work that own whole files of the target -> read with halo, solve, write, mark as done
"""
