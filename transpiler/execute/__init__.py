"""Executing both sides of a check on the same inputs: a second opinion that needs no GPU.

:func:`execute_check` takes both entries and the specialization that they were compiled for.  It may know
specializations, and executes with :mod:`transpiler.tileir.interpret`; of the translator it knows nothing.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy is imported: checks run in parallel, a core each
