"""What the front end can't express: one row a code, with a noun phrase and the way out."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Construct:
    """A Python construct that a kernel can't use, and what to write instead."""

    what: str
    help: str


CONSTRUCTS: dict[str, Construct] = {
    "E0203": Construct("a name that is not defined", "define it, or import it, at the top of the module"),
    "E0204": Construct("a name from a module whose source is not found", "put it beside the file that imports it"),
    "E0205": Construct("an assignment to an attribute or an item", "make a new tile with ct.where, or use ct.store"),
    "E0230": Construct("a name without one fixed value in its module", "give it one value at module level"),
    "E0231": Construct("a variable of the enclosing function", "pass it to the kernel as a ct.Constant parameter"),
    "E0232": Construct("a function inside a kernel", "move it to the top of the module"),
    "E0233": Construct("a lambda", "write a module-level function"),
    "E0234": Construct("a comprehension", "write the items out, or loop with range"),
    "E0235": Construct("unpacking with a star", "write the items out"),
    "E0236": Construct("a `with` statement", "remove it"),
    "E0237": Construct("a `try` statement", "kernels have no exceptions: test the condition with `if`"),
    "E0238": Construct("a `del` statement", "remove it: values need no clean-up"),
    "E0239": Construct("a `global` or `nonlocal` statement", "pass the value as a parameter and return the new one"),
    "E0240": Construct("a generator or coroutine", "return a tuple"),
    "E0241": Construct("a `match` statement", "write `if` and `elif`"),
    "E0242": Construct("a loop with `else`", "set a flag in the loop and test it after"),
    "E0243": Construct("an assignment expression (`:=`)", "assign in a statement of its own"),
    "E0244": Construct("a `raise` statement", "use ct.static_assert for what is known at compile time"),
    "E0245": Construct("an import inside a kernel", "import at the top of the module"),
    "E0246": Construct("a dictionary or set", "use a tuple, or separate names"),
    "E0247": Construct("a literal that tiles can't hold", "use an int, a float, a bool or a string"),
    "E0248": Construct("a chain of assignments whose first target is not a name", "write one assignment a line"),
    "E0249": Construct("an `assert` statement", "use ct.static_assert for what is known at compile time"),
    "E0250": Construct("a class", "move it to the top of the module"),
    "E0251": Construct("a variadic parameter", "name every parameter"),
    "E0252": Construct("a kernel whose name another kernel of the file has", "give every kernel its own name"),
    "E0253": Construct("a module used as a value", "use a function or a constant of the module"),
    "E0259": Construct("a construct that the front end does not know", "rewrite it with plain assignments, if and for"),
}
