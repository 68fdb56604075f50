"""A package whose kernels use helpers of sibling modules."""

from .helpers import double as exported_double

raise RuntimeError("the package must not be imported")
