"""Frozen values of other libraries, and the scripts that compute them."""
