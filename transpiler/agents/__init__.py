"""Filling Holes: constructs that no rule maps, and nothing else.

    machine.py    the state machine of one Hole, on one screen: routes, caps, what stops it
    stages.py     its stages; verdicts.py: how each ends
    filler.py     an operator's Holes, one after another; command.py: the commands
    context.py    a folder that transpile wrote, translated again: its Holes
    analyst.py    the task of a Hole (task.py, signatures.py, coding_rules.py, tokens.py); prompt.py: what is sent
    clients.py    who writes; models.py: models behind an endpoint; transcript.py: what was asked and answered
    bench.py      compiling and comparing in a process with limits
    promote.py    an override as a rule and a case
    raising.py    Holes filled from the reference's own Tile IR, without a language model

What is accepted becomes an override (:mod:`transpiler.overrides`), an input of instruction selection.
"""
