"""Writes down how kernels are launched; put at the front of PYTHONPATH by ``transpile record``.

It runs in the user's Python, which may not have transpile installed: the standard library alone, and nothing here may
disturb the program.  Each process appends to a file of its own in $TRANSPILE_RECORD: one line a kernel and signature,
written before the launch goes on.  The signature is what cuda.tile's own JIT derives; where that needs a driver
that isn't there, :func:`_derived` reads the arguments as the JIT does.
"""

from __future__ import annotations

import enum
import functools
import importlib
import importlib.abc
import json
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

_FOLDER = os.environ.get("TRANSPILE_RECORD", "")
_CWD = os.getcwd()  # what a script's own path is relative to
_seen: set[tuple[int, str, bool]] = set()
_DLPACK_NAMES = {"f": "float", "i": "int", "u": "uint", "b": "bool_", "V": "float4_e2m1fn"}


def _install() -> None:
    _chain()
    if os.path.isdir(_FOLDER):
        sys.meta_path.insert(0, _Finder())


def _chain() -> None:
    """Let another sitecustomize, which this one hides, run too."""
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [path for path in sys.path if os.path.abspath(path) != here]
    own = sys.modules.pop("sitecustomize", None)
    try:
        importlib.import_module("sitecustomize")
    except ImportError as exc:
        if exc.name != "sitecustomize":
            raise
    finally:
        if own is not None:
            sys.modules.setdefault("sitecustomize", own)


class _Finder(importlib.abc.MetaPathFinder):
    """Finds cuda.tile's modules as everybody does, and changes them once they are loaded."""

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: Any = None) -> Any:
        change = {"cuda.tile._cext": _hook_launches, "cuda.tile._execution": _hook_compiler}.get(name)
        if change is None:
            return None
        for finder in sys.meta_path:
            find = getattr(finder, "find_spec", None)
            spec = find(name, path, target) if finder is not self and find is not None else None
            if spec is not None and spec.loader is not None:
                spec.loader = _Loader(spec.loader, change)
                return spec
        return None


class _Loader(importlib.abc.Loader):
    def __init__(self, inner: Any, change: Callable[[Any], None]) -> None:
        self._inner, self._change = inner, change

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def create_module(self, spec: Any) -> Any:
        return self._inner.create_module(spec)

    def exec_module(self, module: Any) -> None:
        self._inner.exec_module(module)
        _quietly(self._change, module)


def _hook_launches(module: Any) -> None:
    for name, place in (("launch", 2), ("launch_extended", 3)):
        real = getattr(module, name, None)
        if real is not None:
            setattr(module, name, _recording(real, place))


def _recording(real: Callable[..., Any], place: int) -> Callable[..., Any]:
    @functools.wraps(real)
    def launch(*args: Any, **kwargs: Any) -> Any:
        if len(args) > place + 1:
            _quietly(_launched, args[place], args[place + 1], args[1])
        return real(*args, **kwargs)

    return launch


def _hook_compiler(module: Any) -> None:
    """The JIT's own signatures, tuning included: exhaustive_search doesn't go through launch."""
    real = module.kernel._compile

    @functools.wraps(real)
    def compile_(self: Any, signature: Any, *args: Any, **kwargs: Any) -> Any:
        _quietly(_write, self, signature.parameters, None)
        return real(self, signature, *args, **kwargs)

    module.kernel._compile = compile_


def _quietly(act: Callable[..., None], *args: Any) -> None:
    try:
        act(*args)
    except Exception as exc:
        _append({"problem": f"{type(exc).__name__}: {exc}"})


def _launched(kernel: Any, args: Sequence[Any], grid: Sequence[int]) -> None:
    args = tuple(args)
    try:
        from cuda.tile.compilation import CallingConvention, KernelSignature

        parameters = KernelSignature.from_kernel_args(kernel, args, CallingConvention.cutile_python_v2()).parameters
    except (OSError, RuntimeError):  # no driver
        nodes = kernel._annotated_function.parameter_annotations
        parameters = [_derived(arg, node) for arg, node in zip(args, nodes, strict=False)]
    _write(kernel, parameters, tuple(grid))


def _write(kernel: Any, parameters: Sequence[Any], grid: tuple[int, ...] | None) -> None:
    function = kernel._annotated_function
    constraints = [_plain(parameter) for parameter in parameters]
    options = {name: _hint(value) for name, value in vars(kernel._compiler_options).items()}
    row = {
        "module": function.pyfunc.__module__, "file": os.path.join(_CWD, function.pyfunc.__code__.co_filename),
        "kernel": function.pyfunc.__name__, "line": function.pyfunc.__code__.co_firstlineno,
        "params": list(function.pysig.parameters), "constraints": constraints, "options": options,
    }  # fmt: skip
    key = json.dumps(row, sort_keys=True)
    known = (os.getpid(), key, grid is None)
    if known not in _seen:
        _seen.add(known)
        _append({**row, "grid": None if grid is None else list(grid), "arch": _arch()})


def _append(row: dict[str, Any]) -> None:
    path = os.path.join(_FOLDER, f"launches-{os.getpid()}.jsonl")
    with open(path, "a", encoding="utf-8") as file:
        file.write(json.dumps(row) + "\n")


def _arch() -> str | None:
    try:
        from cuda.tile._cext import get_compute_capability

        major, minor = get_compute_capability()
        return f"sm_{major}{minor}"
    except Exception:
        return None


def _hint(value: Any) -> int | str | None:
    return value if value is None or isinstance(value, int) else repr(value)


# A signature as plain data


def _plain(value: Any) -> dict[str, Any]:
    """A parameter's description as the manifests have it; what they can't say is told by an "unsupported" key."""
    if isinstance(value, dict):
        return value
    kind = type(value).__name__
    if kind == "ConstantConstraint":
        return _constant(value.value)
    if kind not in ("ArrayConstraint", "ScalarConstraint", "ListConstraint"):
        return {"unsupported": kind.removesuffix("Constraint").lower()}
    return {"kind": kind, **{name: _field(getattr(value, name)) for name in value.__dataclass_fields__}}


def _field(value: Any) -> Any:
    if hasattr(value, "bitwidth"):
        return value.name
    if hasattr(value, "__dataclass_fields__"):
        return _plain(value)
    return [_field(item) for item in value] if isinstance(value, (tuple, list)) else value


def _constant(value: Any) -> dict[str, Any]:
    if isinstance(value, enum.Enum) and isinstance(value.value, (bool, int, float)):
        value = value.value
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        value = str(value)
    elif hasattr(value, "bitwidth"):
        value = value.name
    elif not (value is None or isinstance(value, (bool, int, float))):
        return {"unsupported": type(value).__name__}
    return {"kind": "ConstantConstraint", "value": value}


# Reading arguments where there is no driver to ask


def _derived(value: Any, node: Any) -> dict[str, Any]:
    if getattr(node, "constant", False):
        return _constant(value)
    if isinstance(value, bool):
        return {"kind": "ScalarConstraint", "dtype": "bool_"}
    if isinstance(value, int):
        return {"kind": "ScalarConstraint", "dtype": "int32"}
    if isinstance(value, float):
        return {"kind": "ScalarConstraint", "dtype": "float32"}
    if isinstance(value, (list, tuple)):
        return _list([_array(item) for item in value])
    return _array(value)


def _list(elements: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """One description for all elements: what is true of each."""
    if not elements:
        return {"unsupported": "empty list"}
    common = dict(elements[0])
    for other in elements[1:]:
        for name, mine in common.items():
            theirs = other.get(name)
            if isinstance(mine, list) and isinstance(theirs, list) and len(mine) == len(theirs):
                neutral = 1 if name.endswith("divisible_by") else None
                common[name] = [a if a == b else neutral for a, b in zip(mine, theirs, strict=False)]
            elif name == "may_alias_internally":
                common[name] = mine or theirs
            elif mine != theirs:
                common[name] = 1
    return {"kind": "ListConstraint", "element": common, "alias_groups": [], "elements_may_alias": True}


def _array(value: Any) -> dict[str, Any]:
    shape, strides, dtype, address, size = _layout(value)
    whole = max(1, 16 // size)
    return {
        "kind": "ArrayConstraint", "dtype": dtype, "ndim": len(shape), "index_dtype": "int32",
        "stride_lower_bound_incl": [None if s == 1 else 0 for s in strides], "alias_groups": [],
        "may_alias_internally": _overlaps(shape, strides),
        "stride_constant": [1 if s == 1 else None for s in strides],
        "shape_constant": [1 if n == 1 else None for n in shape],
        "stride_divisible_by": [whole if s != 1 and s % whole == 0 else 1 for s in strides],
        "shape_divisible_by": [16 if n != 1 and n % 16 == 0 else 1 for n in shape],
        "base_addr_divisible_by": 16 if address % 16 == 0 else 1,
    }  # fmt: skip


def _overlaps(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether elements may share memory: an axis steps over less than the axis with the next smaller stride covers."""
    covered = 1
    for stride, size in sorted(zip(strides, shape, strict=False)):
        if stride <= 0 or stride < covered:
            return True
        covered = stride * size
    return False


def _layout(value: Any) -> tuple[list[int], list[int], str, int, int]:
    """Shape, strides in elements, dtype, address and size of an item of a tensor."""
    if hasattr(value, "data_ptr"):
        dtype = str(value.dtype).rpartition(".")[2]
        return (list(value.shape), list(value.stride()), "bool_" if dtype == "bool" else dtype, value.data_ptr(),
                value.element_size())  # fmt: skip
    facts = value.__cuda_array_interface__
    shape, kind, size = list(facts["shape"]), facts["typestr"][1], int(facts["typestr"][2:])
    name = _DLPACK_NAMES[kind]
    strides = facts.get("strides")
    if strides is None:
        found = 1
        strides = []
        for n in reversed(shape):
            strides.insert(0, found)
            found *= n
    else:
        strides = [s // size for s in strides]
    return shape, strides, name if kind in "bV" else f"{name}{8 * size}", facts["data"][0], size


_install()
