"""Image files in and out: PNG, JPEG, TIFF, NPY, NIfTI, MRC and FITS; CZI, ND2 and LIF in.

:func:`read` gives a :class:`Picture`, whose pages a denoiser works on one by one; :func:`write` stores it
with its dtype, alpha and metadata. :func:`open_pages` and
:func:`write_pages` do the same for stacks, page by page.
"""

from vnlem.io.files import check_writable, open_pages, open_series, read, write, write_pages
from vnlem.io.formats import Format, takes_pages
from vnlem.io.pages import PagesOnDisk, ScratchPages
from vnlem.io.picture import Calibration, Metadata, Picture
from vnlem.io.series import Series, split_series

__all__ = [
    "Calibration",
    "Format",
    "Metadata",
    "PagesOnDisk",
    "Picture",
    "ScratchPages",
    "Series",
    "check_writable",
    "open_pages",
    "open_series",
    "read",
    "split_series",
    "takes_pages",
    "write",
    "write_pages",
]
