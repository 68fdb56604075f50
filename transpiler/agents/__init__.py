"""Filling Holes: constructs that no rule maps, and nothing else.

    context.py    a folder that transpile wrote, translated again: its Holes
    task.py       what is known of a Hole, and what is asked (pydantic models)
    raising.py    Holes filled from the reference's own Tile IR, without a language model
    command.py    ``transpile fill`` and ``transpile promote``

What is accepted becomes an override (:mod:`transpiler.overrides`), an input of instruction selection.
"""
