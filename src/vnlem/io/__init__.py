"""Image files in and out: PNG, JPEG, TIFF and NPY.

:func:`read` gives a :class:`Picture`, whose pages a denoiser works on one by one; :func:`write` puts it
back with its dtype, its alpha and what the file said about itself. :func:`open_pages` and
:func:`write_pages` do the same for stacks, page by page.
"""

from vnlem.io.files import check_writable, open_pages, read, write, write_pages
from vnlem.io.formats import is_tiff_name
from vnlem.io.pages import PagesOnDisk, ScratchPages
from vnlem.io.picture import Metadata, Picture

__all__ = [
    "Metadata",
    "PagesOnDisk",
    "Picture",
    "ScratchPages",
    "check_writable",
    "is_tiff_name",
    "open_pages",
    "read",
    "write",
    "write_pages",
]
