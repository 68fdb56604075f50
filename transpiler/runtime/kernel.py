"""Kernels as host code sees them: objects to launch, to give other hints, and to pass around."""

from __future__ import annotations

import dataclasses
import inspect
import json
import struct
import threading
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, NoReturn

from . import library as _library
from .arrays import Description, describe
from .dtypes import BY_NAME
from .errors import ArgumentError, DeviceError, DTypeError, GridError, HintError, LibraryError, RankError
from .fast import Launch
from .surface import (
    HINTS,
    OWNER,
    AnnotatedFunction,
    Annotation,
    ByTarget,
    CompilerOptions,
    check_hints,
    python_function,
)

_TENSOR = struct.Struct("=Q8q8qiiii")
_INTEGER = struct.Struct("=iiq")
_NUMBER = struct.Struct("=iid")
_ADDRESS = struct.Struct("=iiQ")
_LAUNCH = struct.Struct("=II3IiiiiiQ")
_NO_AXES = (0,) * 8
_NONE, _BOOL, _INT, _FLOAT, _TEXT = range(5)
_DRY_RUN, _DEPENDENT = 1, 2
_LIST = 1
_TRANSLATED = "__cutile_translated__"
"""The attribute of a kernel of cuda.tile that holds the translated one."""


class Array(NamedTuple):
    """An array parameter: the ranks and element types that it was translated for (none: the kernel doesn't use it)."""

    name: str
    ranks: tuple[int, ...]
    dtypes: tuple[str, ...]


class List(NamedTuple):
    """A parameter that is a list of arrays; they agree in rank and element type."""

    name: str
    ranks: tuple[int, ...]
    dtypes: tuple[str, ...]


class Scalar(NamedTuple):
    """A parameter that is a number at run time."""

    name: str


class Constant(NamedTuple):
    """A parameter that is a constant of the compilation."""

    name: str


Parameter = Array | List | Scalar | Constant
_ROLES = {Array: "a", Scalar: "s", Constant: "c", List: "l"}


class Kernel:
    """A kernel in the library. Stands where host code had a ``ct.kernel``, and shows of itself what that one does.

    ``decorated`` are the hints of its decorator (a dict where they are by target), ``origin`` says where its function
    is (``module:qualified.name``), ``signature`` its parameters if names aren't all, ``doc`` its docstring.
    ``left_out`` says why the library doesn't have it, which a launch raises then.
    """

    def __init__(
        self,
        symbol: str,
        name: str,
        parameters: Sequence[Parameter],
        decorated: Mapping[str, Any] | None = None,
        library: _library.Library = _library.DEFAULT,
        left_out: str = "",
        origin: str = "",
        signature: str = "",
        doc: str | None = None,
    ) -> None:
        self.symbol, self.name, self.parameters = symbol, name, tuple(parameters)
        self._left_out, self._signature = left_out, signature
        self.hints: dict[str, Any] = {}
        self._decorated = dict(decorated or {})
        self._library = library
        self._origin = origin or f"__main__:{name}"
        self._root: Kernel = self
        self._function: Any = None
        self.__module__, _, self.__qualname__ = self._origin.partition(":")
        self.__name__, self.__doc__ = self.__qualname__.rpartition(".")[2], doc
        numbered = list(enumerate(self.parameters))
        self._arrays = [
            (i, p, frozenset(BY_NAME[d] for d in p.dtypes)) for i, p in numbered if isinstance(p, Array | List)
        ]
        values = [(i, p.name) for i, p in numbered if isinstance(p, Scalar)]
        self._scalars = len(values)
        self._values = [*values, *((i, p.name) for i, p in numbered if isinstance(p, Constant))]
        self._resolved: dict[int, tuple[int, int, int, int]] = {}
        self._threads = threading.local()
        self._roles = "".join(_ROLES[type(p)] for p in self.parameters)
        self._fast: Launch | None = None
        library.declare([symbol])

    def __repr__(self) -> str:
        hints = "".join(f", {name}={value!r}" for name, value in self.hints.items())
        return f"<cuTile Rust kernel {self.name}{hints}>"

    def __call__(self, *args: object, **kwargs: object) -> None:
        """Kernels are launched, not called."""
        raise TypeError(f"kernel {self.name} can't be called; launch it")

    def __reduce__(self) -> NoReturn:
        """Kernels belong to their process, like those of cuda.tile: no copies, no pickles."""
        raise TypeError(f"cannot pickle 'Kernel' object {self.name}")

    # What it shows

    @property
    def _pyfunc(self) -> Any:
        """The Python function; ``tile_kernel`` of it is this kernel again, without the hints that replaced others."""
        root = self._root
        if root._function is None:
            names = [parameter.name for parameter in root.parameters]
            root._function = python_function(root._origin, names, root._signature, root.__doc__)
            setattr(root._function, OWNER, root)
        return root._function

    @property
    def __wrapped__(self) -> Any:
        """The Python function, for ``inspect``."""
        return self._pyfunc

    @property
    def _annotated_function(self) -> AnnotatedFunction:
        annotations = tuple(Annotation(isinstance(parameter, Constant)) for parameter in self.parameters)
        return AnnotatedFunction(self._pyfunc, inspect.signature(self._pyfunc), annotations)

    @property
    def _compiler_options(self) -> CompilerOptions:
        decorated = {name: ByTarget.of(value) for name, value in self._decorated.items()}
        return CompilerOptions(**(decorated | self.hints))

    # Hints

    def replace_hints(self, **hints: Any) -> Kernel:
        """Return the same kernel with other hints (num_ctas, occupancy, opt_level, num_worker_warps).

        Raises HintError: there is no such hint, a value is out of range, or the source's would have to be removed.
        """
        check_hints(hints)
        for name, value in hints.items():
            if value is None and name in self._decorated:
                raise HintError(
                    f"the hint `{name}` stands in the source of {self.name}: it can be changed, not removed"
                )
        return self._with(self.hints | hints)

    def decorated_again(self, hints: Mapping[str, Any]) -> Kernel:
        """Return the kernel that ``ct.kernel`` makes of its function with these hints.

        Hints of the source that aren't given stay: they are compiled into the library.
        """
        check_hints(hints)
        given = {name: value for name, value in hints.items() if value is not None}
        if "opt_level" in self._decorated:
            given.setdefault("opt_level", CompilerOptions.opt_level)
        return self._root._with(given)

    def _with(self, hints: Mapping[str, Any]) -> Kernel:
        other = Kernel(
            self.symbol, self.name, self.parameters, self._decorated, self._library, self._left_out, self._origin,
            self._signature, self.__doc__,
        )  # fmt: skip
        other._root, other.hints = self._root, dict(hints)
        return other

    def launch(
        self, stream: Any, grid: Sequence[int], args: Sequence[Any], *, programmatic_dependent_launch: bool = False
    ) -> None:
        """Enqueue the kernel on a stream; raises a :class:`CutileError`."""
        flags = _DEPENDENT if programmatic_dependent_launch else 0
        if self._fast is not None:
            status = self._fast(stream, grid, args, flags)
            if not status:
                return
            if status > 0:
                self._library.check(status)
        self._prepare(self._call(stream, grid, args, flags))

    def _prepare(self, device: int) -> None:
        """Make the launch function for the calls after this one."""
        by_target = any(hasattr(value, "_by_target") for value in self.hints.values())
        if self._fast is None or by_target:
            hints = self._resolved[device]
            self._fast = self._library.fast(self.symbol, self._roles, hints, device if by_target else -1)

    def plan(self, grid: Sequence[int], args: Sequence[Any]) -> dict[str, Any]:
        """Return what a launch would compile: entry, generics and facts. Needs the library, but no device."""
        self._call(0, grid, args, _DRY_RUN)
        plan: dict[str, Any] = json.loads(self._library.last_plan())
        return plan

    def _call(self, stream: Any, grid: Sequence[int], args: Sequence[Any], flags: int) -> int:
        """Pack a call and make it; returns the device."""
        if self._left_out:
            raise LibraryError(self._left_out)
        if len(args) != len(self.parameters):
            raise ArgumentError(f"{self.name} takes {len(self.parameters)} arguments, {len(args)} were given")
        handle = stream_handle(stream)
        device = -1
        packed = []
        frame: _Frame | None = getattr(self._threads, "frame", None)
        texts: list[tuple[Any, int]] = []  # keeps characters, and the descriptions of a list's arrays, alive
        for index, parameter, dtypes in self._arrays:
            if isinstance(parameter, List):
                arrays = self._items(parameter, dtypes, args[index], handle)
            else:
                arrays = [self._array(parameter, dtypes, args[index], handle)]
            for array in arrays:
                device = array.device if device < 0 else self._same_device(parameter, device, array.device)
            if isinstance(parameter, List):
                frame = frame or self._frame()
                texts.append(frame.descriptions(b"".join(map(pack_array, arrays))))
                packed.append(pack_list(texts[-1][1], len(arrays)))
            else:
                packed.append(pack_array(arrays[0]))
        frame = frame or self._frame()
        for index, name in self._values:
            value = args[index]
            if isinstance(value, str):
                texts.append(frame.text(value))
                packed.append(pack_value(value, name, texts[-1][1]))
            else:
                packed.append(pack_value(value, name))
        packed.append(self._launch_structure(flags, grid, max(device, 0), handle))
        frame.memory[:] = b"".join(packed)
        status = frame.function(*frame.arguments)
        if status:
            self._library.check(status)
        return max(device, 0)

    def _frame(self) -> _Frame:
        """Load the library, and make this thread's memory for the arguments of calls."""
        frame = self._threads.frame = _Frame(
            self._library, self.symbol, len(self._arrays), self._scalars, len(self._values)
        )
        return frame

    def _items(self, parameter: List, dtypes: frozenset[int], value: Any, stream: int) -> list[Description]:
        if not isinstance(value, list | tuple) or not value:
            raise ArgumentError(f"`{parameter.name}` of {self.name} has to be a list of arrays, with one at least")
        return [self._array(parameter, dtypes, item, stream) for item in value]

    def _array(self, parameter: Array | List, dtypes: frozenset[int], value: Any, stream: int) -> Description:
        array = describe(value, parameter.name, stream)
        if dtypes and array.dtype not in dtypes:
            raise DTypeError(
                f"array `{parameter.name}` of {self.name} has elements of type {array.dtype_name}; the kernel was "
                f"translated for {', '.join(parameter.dtypes)}"
            )
        if parameter.ranks and len(array.shape) not in parameter.ranks:
            raise RankError(
                f"array `{parameter.name}` of {self.name} has rank {len(array.shape)}; the kernel was translated for "
                f"rank {' and '.join(map(str, parameter.ranks))}"
            )
        return array

    def _same_device(self, parameter: Array | List, known: int, given: int) -> int:
        if known < 0 or given < 0 or known == given:
            return max(known, given)
        raise DeviceError(
            f"array `{parameter.name}` of {self.name} is on device {given}, the arrays before it are on device {known}"
        )

    def _launch_structure(self, flags: int, grid: Sequence[int], device: int, stream: int) -> bytes:
        dims = tuple(grid)
        if not 1 <= len(dims) <= 3:
            raise GridError(f"a grid has 1 to 3 dimensions, not {len(dims)}")
        if min(dims) < 0 or max(dims) > 0xFFFFFFFF:
            raise GridError(f"a grid of {dims} can't be launched")
        resolved = self._resolved.get(device)
        if resolved is None:
            resolved = self._resolved[device] = self._resolve_hints(device)
        return _LAUNCH.pack(_LAUNCH.size, flags, *dims, *_ONES[len(dims) :], device, *resolved, stream)

    def _resolve_hints(self, device: int) -> tuple[int, int, int, int]:
        """Return the hints in the order of the C structure; 0 means as the decorator says."""
        values = {name: self._hint(name, device) for name in HINTS}
        level = values["opt_level"]
        rest = (values["occupancy"] or 0, values["num_ctas"] or 0, values["num_worker_warps"] or 0)
        return (*rest, 0 if level is None else level + 1)

    def _hint(self, name: str, device: int) -> int | None:
        value = self.hints.get(name)
        by_target = getattr(value, "_by_target", None)
        if isinstance(by_target, dict):  # a ct.ByTarget
            value = by_target.get(self._library.target(device), getattr(value, "_default", None))
            value = value if isinstance(value, int) else None
        if value is not None and (not isinstance(value, int) or not 0 <= value <= 1024):
            raise HintError(f"{value!r} is no value for the hint `{name}`")
        return value


class _Frame:
    """The arguments of a thread's calls of one kernel, in memory that the C function reads."""

    def __init__(self, library: _library.Library, symbol: str, arrays: int, scalars: int, values: int) -> None:
        self._ffi, _ = library.open()
        ffi = self._ffi
        values_at = arrays * _TENSOR.size
        launch_at = values_at + values * _INTEGER.size
        places = (0, values_at, values_at + scalars * _INTEGER.size, launch_at)
        self._owner = ffi.new("char[]", launch_at + _LAUNCH.size)
        self.memory = ffi.buffer(self._owner)
        self.function = library.function(symbol)
        kinds = ("cutile_tensor *", "cutile_value *", "cutile_value *", "cutile_launch *")
        pointers = [ffi.cast(kind, self._owner + place) for kind, place in zip(kinds, places, strict=True)]
        self.arguments = (
            pointers[0], arrays, pointers[1], scalars, pointers[2], values - scalars, pointers[3],
        )  # fmt: skip

    def descriptions(self, packed: bytes) -> tuple[Any, int]:
        """Return descriptions of arrays in memory, and their address."""
        memory = self._ffi.new("cutile_tensor[]", len(packed) // _TENSOR.size)
        self._ffi.memmove(memory, packed, len(packed))
        return memory, int(self._ffi.cast("uintptr_t", memory))

    def text(self, value: str) -> tuple[Any, int]:
        """Return the characters of a str and their address."""
        characters = self._ffi.new("char[]", value.encode())
        return characters, int(self._ffi.cast("uintptr_t", characters))


_ONES = (1, 1, 1)


def kernel_of(function: Any) -> Kernel | None:
    """Return the translated kernel that a Python function belongs to, or that it is itself."""
    found = function if isinstance(function, Kernel) else getattr(function, OWNER, None)
    return found if isinstance(found, Kernel) else None


def translated(kernel: Any) -> Any:
    """Return the translated kernel where somebody made a kernel of cuda.tile of its function; others as they are."""
    known = getattr(kernel, _TRANSLATED, None)
    options = getattr(kernel, "_compiler_options", None)
    ours = kernel_of(getattr(kernel, "_pyfunc", None))
    if known is not None or isinstance(kernel, Kernel) or ours is None or not dataclasses.is_dataclass(options):
        return known or kernel
    hints = {field.name: getattr(options, field.name) for field in dataclasses.fields(options)}
    made = ours.decorated_again(hints)
    setattr(kernel, _TRANSLATED, made)
    return made


def launch(
    stream: Any,
    grid: Sequence[int],
    kernel: Any,
    kernel_args: Sequence[Any],
    /,
    *,
    programmatic_dependent_launch: bool = False,
) -> None:
    """Launch a kernel as ``ct.launch`` does; kernels that were not translated go to ``ct.launch``."""
    if not isinstance(kernel, Kernel):
        kernel = translated(kernel)
    if isinstance(kernel, Kernel):
        kernel.launch(stream, grid, kernel_args, programmatic_dependent_launch=programmatic_dependent_launch)
        return
    import cuda.tile

    more = {"programmatic_dependent_launch": True} if programmatic_dependent_launch else {}
    cuda.tile.launch(stream, grid, kernel, kernel_args, **more)


def stream_handle(stream: Any) -> int:
    """Return the handle of a stream of torch, cupy or any other library; None is the default stream."""
    if stream is None:
        return 0
    if isinstance(stream, int):
        return stream
    for attribute in ("cuda_stream", "ptr", "handle"):  # torch, cupy, cuda.core
        handle = getattr(stream, attribute, None)
        if handle is not None and hasattr(handle, "__int__"):
            return int(handle)
    protocol = getattr(stream, "__cuda_stream__", None)
    if protocol is not None:
        return int((protocol() if callable(protocol) else protocol)[1])
    raise ArgumentError(f"{type(stream).__name__} is no CUDA stream")


def pack_array(array: Description) -> bytes:
    """Return the ``cutile_tensor`` of an array."""
    rank = len(array.shape)
    if rank > 8:
        raise RankError(f"an array of rank {rank} can't be passed to a kernel")
    rest = _NO_AXES[rank:]
    try:
        return _TENSOR.pack(array.data, *array.shape, *rest, *array.strides, *rest, rank, array.dtype, array.device, 0)
    except struct.error as exc:
        raise ArgumentError(f"an array can't be passed to a kernel: {exc}") from None


def pack_list(address: int, length: int) -> bytes:
    """Return the ``cutile_tensor`` of a list of arrays whose descriptions are at an address."""
    return _TENSOR.pack(address, length, *_NO_AXES[1:], *_NO_AXES, 0, 0, -1, _LIST)


def pack_value(value: Any, name: str, text: int = 0) -> bytes:
    """Return the ``cutile_value`` of a scalar or constant; ``text`` is the address of a str's characters."""
    try:
        match value:
            case bool():
                return _INTEGER.pack(_BOOL, 0, value)
            case int():
                return _INTEGER.pack(_INT, 0, value)
            case float():
                return _NUMBER.pack(_FLOAT, 0, value)
            case str():
                return _ADDRESS.pack(_TEXT, 0, text)
            case None:
                return _INTEGER.pack(_NONE, 0, 0)
    except struct.error:
        raise ArgumentError(f"`{name}` is {value}, which doesn't fit into 64 bits") from None
    item = getattr(value, "item", None)
    if callable(item) and not hasattr(value, "data_ptr"):
        return pack_value(item(), name)  # a NumPy number
    raise ArgumentError(f"`{name}` has to be a number or a constant, not {type(value).__name__}")
