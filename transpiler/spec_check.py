"""Whether a specialization fits its kernel, as far as the kernel's signature says."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from transpiler.frontend.params import Role, annotated_role
from transpiler.ir import hir
from transpiler.spec import DTYPES, ArraySpec, ConstantSpec, ListSpec, ParamSpec, Specialization

_NUMBERS = frozenset({"inf", "+inf", "-inf", "nan"})


@dataclass(frozen=True)
class Misfit:
    """What doesn't fit, and the keys that lead to it in the specialization."""

    message: str
    keys: tuple[str, ...]
    help: str


def misfit(function: hir.Function, one: Specialization) -> Misfit | None:
    """Return the first thing about a specialization that can't be meant for a kernel (the code is E0212)."""
    names = [param.name for param in function.params]
    listing = f"the parameters are: {', '.join(names)}"
    for name in one.params:
        if name not in names:
            return Misfit(f"`{function.name}` has no parameter `{name}`", ("params", name), listing)
    missing = [name for name in names if name not in one.params]
    if missing:
        shown = ", ".join(f"`{name}`" for name in missing)
        return Misfit(f"`{one.name}` says nothing of {shown} of `{function.name}`", (), listing)
    for param in function.params:
        why = _wrong(annotated_role(param), one.params[param.name])
        if why:
            return Misfit(f"`{param.name}` of `{function.name}` {why}", ("params", param.name),
                          "`transpile explain E0271` shows how each kind is written")  # fmt: skip
    for name, value in one.hints:
        if isinstance(value, str) and not _is_hint(value):
            return Misfit(f"can't read the hint `{value}`", ("hints", name),
                          "give a number, or text such as `ByTarget(sm_90=2, default=1)`")  # fmt: skip
    return None


def _wrong(role: Role, given: ParamSpec) -> str:
    """Why what is given can't be what the annotation says; "" when it can."""
    if role == "constant" and not isinstance(given, ConstantSpec):
        return f"is a ct.Constant: give its value instead of {_what(given)}"
    if role == "scalar" and isinstance(given, ArraySpec | ListSpec):
        return f"is a number: give its dtype instead of {_what(given)}"
    value = given.value if isinstance(given, ConstantSpec) else None
    if isinstance(value, str) and value not in _NUMBERS and value not in DTYPES:
        return f"can't be `{value}`, which is neither a number nor a dtype"
    return ""


def _what(given: ParamSpec) -> str:
    return {"array": "an array", "list": "a list", "scalar": "a run-time scalar"}.get(given.kind, "a constant")


def _is_hint(text: str) -> bool:
    try:
        call = ast.parse(text, mode="eval").body
        if isinstance(call, ast.Call):
            plain = all(keyword.arg is not None for keyword in call.keywords) and not call.args
            return plain and ast.unparse(call.func).endswith("ByTarget")
        ast.literal_eval(call)
    except (SyntaxError, ValueError, TypeError):
        return False
    return True
