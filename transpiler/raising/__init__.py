"""Raising: the reference's own Tile IR as cuTile Rust for one specialization, where a rule is missing.

table.py      one row a regular operation: what it is in TIR
lift.py       an entry, operation by operation; accesses.py, reductions.py, regions.py: those with more to say
values.py     flat parameters and values; types.py: printed types and constants; refusal.py: E0610
raise_kernel.py  a whole kernel;  hole.py  one call without a rule;  apply.py  raised overrides in a translation
selftest.py   raising judged by kernels that rules translate too (tools/raise_corpus.py)
"""
