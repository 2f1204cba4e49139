"""Image files in and out: PNG, JPEG, TIFF and NPY.

:func:`read` gives a :class:`Picture`, whose pages a denoiser works on one by one; :func:`write` puts it
back with its dtype, its alpha and what the file said about itself.
"""

from vnlem.io.files import check_writable, read, write
from vnlem.io.picture import Metadata, Picture

__all__ = ["Metadata", "Picture", "check_writable", "read", "write"]
