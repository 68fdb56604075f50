"""Translated kernels as backends of other libraries."""
