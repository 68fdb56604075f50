"""The front end: a Python file to HIR, without running any of it."""

from transpiler.frontend.constructs import CONSTRUCTS, Construct
from transpiler.frontend.program import decorator_hints, kernel_names, load_program

__all__ = ["CONSTRUCTS", "Construct", "decorator_hints", "kernel_names", "load_program"]
