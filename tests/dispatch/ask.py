"""What cuda.tile's own launcher makes of calls; run with a driver that does nothing in LD_LIBRARY_PATH.

Reads a JSON list of calls from the standard input, each a list of arguments, and writes their signatures. An array is
given by its shape, strides, bytes an element and address: of element types the launcher uses nothing but the size.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import cuda.tile as ct
from cuda.tile.compilation import CallingConvention, KernelSignature

_TYPES = {1: "|i1", 2: "<f2", 4: "<f4", 8: "<f8"}


class _Array:
    def __init__(self, array: dict[str, Any]) -> None:
        size = array["size"]
        self.__cuda_array_interface__ = {
            "shape": tuple(array["shape"]), "typestr": _TYPES[size], "data": (array["address"], False),
            "strides": tuple(stride * size for stride in array["strides"]), "version": 3,
        }  # fmt: skip


def _kernel(constants: list[bool]) -> Any:
    """A kernel with that many parameters, of which some are constants."""
    names = [f"p{index}" for index in range(len(constants))]
    scope: dict[str, Any] = {}
    exec(f"def kernel({', '.join(names)}): pass", scope)
    function = scope["kernel"]
    function.__annotations__ = {n: ct.Constant for n, constant in zip(names, constants, strict=True) if constant}
    return ct.kernel(function)


def _argument(given: Any) -> Any:
    if isinstance(given, list):
        return [_Array(one) for one in given]
    if isinstance(given, dict) and "float" in given:
        return float(given["float"])
    return _Array(given) if isinstance(given, dict) else given


def _plain(value: Any) -> Any:
    if hasattr(value, "bitwidth"):
        return value.name
    if hasattr(value, "__dataclass_fields__"):
        kind = type(value).__name__.removesuffix("Constraint").lower()
        return {"kind": kind, **{name: _plain(getattr(value, name)) for name in value.__dataclass_fields__}}
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    return {"float": repr(value)} if isinstance(value, float) else value


def _main() -> None:
    out: list[Any] = []
    for call in json.load(sys.stdin):
        arguments = tuple(map(_argument, call["arguments"]))
        convention = CallingConvention.cutile_python_v2()
        try:
            signature = KernelSignature.from_kernel_args(_kernel(call["constants"]), arguments, convention)
            out.append([_plain(parameter) for parameter in signature.parameters])
        except (TypeError, ValueError) as exc:
            out.append(f"{type(exc).__name__}: {exc}")
    json.dump(out, sys.stdout)


if __name__ == "__main__":
    _main()
