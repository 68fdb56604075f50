"""The front end: positions, names across modules, what a kernel is, and one diagnostic for every bad file."""

from __future__ import annotations

import ast
import builtins
import dataclasses
import importlib.util
from collections.abc import Callable, Iterator
from pathlib import Path

import libcst as cst
import pytest
from libcst.metadata import MetadataWrapper, PositionProvider

from transpiler.diagnostics import Diagnostic, Span, TranspileError
from transpiler.frontend import (
    CONSTRUCTS,
    decorator_hints,
    expressions,
    kernel_names,
    load_program,
    lower,
)
from transpiler.frontend.positions import positions_of
from transpiler.ir import hir
from transpiler.ir.hir_print import print_expr, print_function, print_program

HEAD = "import cuda.tile as ct\n\n\n"
KERNEL = HEAD + "@ct.kernel\ndef k(a, b):\n"
Write = Callable[[dict[str, str]], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write files under a fresh folder and return the path of the last one."""

    def _write(files: dict[str, str]) -> Path:
        path = tmp_path
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return path

    return _write


def nodes(value: object) -> Iterator[hir.Node]:
    """Every HIR node inside a value."""
    if isinstance(value, hir.Node):
        yield value
    if dataclasses.is_dataclass(value) and not isinstance(value, Span):
        for field in dataclasses.fields(value):
            yield from nodes(getattr(value, field.name))
    elif isinstance(value, tuple):
        for item in value:
            yield from nodes(item)
    elif isinstance(value, dict):
        yield from nodes(tuple(value.values()))


def kernel_of(path: Path, name: str = "k") -> hir.Function:
    loaded = load_program(path)
    return loaded.modules[loaded.main].functions[name]


def failure(path: Path) -> Diagnostic:
    with pytest.raises(TranspileError) as caught:
        load_program(path, display=path.name)
    return caught.value.diagnostic


# Positions


def test_positions_are_those_of_libcst() -> None:
    text = (
        Path(lower.__file__).read_text(encoding="utf-8") + "\nx = (  # c\n    1,\n    [2,\n 3])  \nif x: y = f'{x}'\n"
    )
    module = cst.parse_module(text)
    ours, comments = positions_of(module)
    theirs = MetadataWrapper(module, unsafe_skip_copy=True).resolve(PositionProvider)
    expected = {id(n): (r.start.line, r.start.column, r.end.line, r.end.column) for n, r in theirs.items()}
    assert {**expected, id(module): ours[id(module)]} == ours  # nobody asks where the module is
    lines = text.split("\n")
    assert len(comments) > 5
    assert all(lines[line - 1][column:] == comment for line, column, comment in comments)


def test_spans_name_the_text(write: Write) -> None:
    text = (
        '"""Module."""\n\nimport cuda.tile as ct; import math\n\nTAIL = "ä"  # ü\n\n\n# above\n@ct.kernel\n'
        'def k(a, n: ct.Constant[int]):\n    """Doc."""\n\n    "ünï"; x = (a + n) * -1\n    if x:\n'
        "        y = ct.load(a, (0,),\n            n)[0, :]\n    # end\n"
    )
    path = write({"mod.py": text})
    function = kernel_of(path)
    lines = text.split("\n")

    def at(span: Span) -> str:
        picked = lines[span.line - 1 : span.end_line]
        picked[-1] = picked[-1][: span.end_column - 1]
        picked[0] = picked[0][span.column - 1 :]
        return "\n".join(picked)

    assign = function.body[0]
    assert isinstance(assign, hir.Assign)
    assert at(assign.span) == "x = (a + n) * -1"
    assert at(assign.value.span) == "(a + n) * -1"
    assert isinstance(assign.value, hir.Call)
    assert [at(a.span) for a in assign.value.args] == ["a + n", "-1"]
    branch = function.body[1]
    assert isinstance(branch, hir.If)
    inner = branch.then[0]
    assert isinstance(inner, hir.Assign)
    assert isinstance(inner.value, hir.Call)
    assert [at(a.span) for a in inner.value.args] == ["ct.load(a, (0,),\n            n)", "0"]
    assert at(function.params[1].span) == "n"
    assert at(function.decorators[0].span) == "ct.kernel"
    assert at(function.span).startswith("def k(")
    assert (function.span.file, function.span.line) == ("mod.py", 10)
    assert function.comments == ("above",)
    assert function.trailing_comments == ("end",)
    assert function.docstring == "Doc."


def test_every_node_has_a_place(write: Write) -> None:
    path = write({"k.py": KERNEL + "    x = a[0, :] if a < 1 < b else f'{a}' + 'c'\n    x += 1\n    del x\n"})
    assert all(node.span.line > 0 and node.span.file == "k.py" for node in nodes(kernel_of(path)))


def test_display_path(write: Write) -> None:
    path = write({
        "pkg/__init__.py": "", "pkg/sub/__init__.py": "", "pkg/util.py": "def f(x):\n    return x\n",
        "pkg/sub/mod.py": "from ..util import f\n" + KERNEL + "    return f(a)\n",
    })  # fmt: skip
    assert [m.path for m in load_program(path).modules.values()] == ["pkg/sub/mod.py", "pkg/util.py"]
    loaded = load_program(path, display="some/where/sub/mod.py")
    assert [m.path for m in loaded.modules.values()] == ["some/where/sub/mod.py", "some/where/util.py"]
    assert list(loaded.modules) == ["pkg.sub.mod", "pkg.util"]


# Names across modules

PACKAGE = {
    "pkg/__init__.py": "from .gelu import gelu as exported\n",
    "pkg/gelu.py": "import math\n\nSQRT = math.sqrt(2)\n\n\ndef inner(x):\n    return x * SQRT\n\n\n"
    "def gelu(x):\n    return inner(x)\n\n\ndef unused(x):\n    return undefined\n\n\nalias = gelu\n",
    "pkg/types.py": "import cuda.tile as ct\nConstInt = ct.Constant[int]\nZERO = ct.PaddingMode.ZERO\n",
    "pkg/sub/__init__.py": "",
    "pkg/sub/deep.py": "def deep(x):\n    return x\n",
    "pkg/star.py": "from .gelu import *\nfrom .types import *\n",
}
IMPORTS = {
    "from .gelu import gelu": "gelu",
    "from .gelu import gelu as g": "g",
    "from .gelu import alias": "alias",
    "from . import gelu as u": "u.gelu",
    "from . import gelu": "gelu.gelu",
    "from pkg.gelu import gelu": "gelu",
    "from pkg import gelu": "gelu.gelu",
    "from pkg import exported": "exported",
    "import pkg.gelu": "pkg.gelu.gelu",
    "import pkg.gelu as pg": "pg.gelu",
    "import pkg": "pkg.exported",
    "from .star import gelu": "gelu",
    "from .star import *": "gelu",
    "try:\n    from .gelu import gelu\nexcept ImportError:\n    gelu = None": "gelu",
}


@pytest.mark.parametrize("statement", IMPORTS)
def test_sibling_imports(statement: str, write: Write) -> None:
    text = f"{statement}\n{KERNEL}    return {IMPORTS[statement]}(a)\n"
    loaded = load_program(write({**PACKAGE, "pkg/main.py": text}))
    body = loaded.modules["pkg.main"].functions["k"].body
    assert print_expr(body[0].value) == "pkg.gelu::gelu(a)"  # type: ignore[attr-defined]
    gelu = loaded.modules["pkg.gelu"]
    assert list(gelu.functions) == ["inner", "gelu"]
    assert list(gelu.constants) == ["SQRT"]
    assert loaded.function(hir.Global("pkg.gelu", "gelu")) is gelu.functions["gelu"]
    assert loaded.constant(hir.Global("pkg.gelu", "SQRT")) is gelu.constants["SQRT"]


def test_constants_of_siblings(write: Write) -> None:
    text = (
        "from .types import ConstInt, ZERO\nfrom .sub import deep\nfrom .sub.deep import deep as d\n" + HEAD
        + "@ct.kernel\ndef k(a, n: ConstInt):\n    return ct.load(a, padding_mode=ZERO), deep.deep(n), d(n)\n"
    )  # fmt: skip
    function = kernel_of(write({**PACKAGE, "pkg/main.py": text}))
    assert print_function(function) == (
        "@cuda.tile.kernel\ndef k(a, n: operator.getitem(cuda.tile.Constant, builtins.int)):\n"
        "    return (cuda.tile.load(a, padding_mode=cuda.tile.PaddingMode.ZERO), pkg.sub.deep::deep(n), "
        "pkg.sub.deep::deep(n))\n"
    )


def test_beside_a_script(write: Write) -> None:
    text = "from helpers import f\nfrom .helpers import f as g\nfrom . import helpers\n" + KERNEL
    main = text + "    f(a), g(a), helpers.f(a)\n"
    function = kernel_of(write({"helpers.py": "def f(x):\n    return x\n", "main.py": main}))
    assert print_function(function).count("helpers::f(a)") == 3


def test_a_package_goes_before_a_module_as_in_python(write: Write) -> None:
    files = {"helpers.py": "def f(x):\n    return -x\n", "helpers/__init__.py": "def f(x):\n    return x\n"}
    loaded = load_program(write({**files, "main.py": "from helpers import f\n" + KERNEL + "    f(a)\n"}))
    function = loaded.function(hir.Global("helpers", "f"))
    assert function is not None
    assert "return x" in print_function(function)


@pytest.mark.parametrize(
    ("statement", "name", "code"),
    [
        ("", "nothing", "E0203"),
        ("from .gelu import nothing", "nothing", "E0203"),
        ("from .absent import nothing", "nothing", "E0204"),
        ("from ... import nothing", "nothing", "E0204"),
        ("import pkg.absent", "pkg.absent.f", "E0203"),
        ("import pkg.absent as p", "p.f", "E0204"),
        ("from not_installed_anywhere import f", "f", "E0204"),
        ("import not_installed_anywhere", "not_installed_anywhere.f", "E0204"),
        ("from . import gelu", "gelu", "E0253"),
        ("x = 1\nx = 2", "x", "E0230"),
        ("x = 1\ndef f():\n    global x\n    x = 2", "x", "E0230"),
        ("for x in (1, 2):\n    pass", "x", "E0230"),
        ("class x:\n    pass", "x", "E0230"),
        ("from torch import *", "max", "E0230"),
    ],
)
def test_names_without_a_value(statement: str, name: str, code: str, write: Write) -> None:
    text = f"{statement}\n{KERNEL}    return {name}\n"
    value = kernel_of(write({**PACKAGE, "pkg/main.py": text})).body[0].value  # type: ignore[attr-defined]
    assert isinstance(value, hir.Unsupported)
    assert value.code == code
    assert name in value.what or "absent" in value.what
    assert value.span.line == text.count("\n")


@pytest.mark.parametrize(
    ("statement", "text", "expected"),
    [
        ("from cuda.tile._stub import pack_to_bytes as p", "p", "cuda.tile.pack_to_bytes"),
        ("import cuda.tile._datatype as dt", "dt.float32", "cuda.tile.float32"),
        ("from cuda import tile as t", "t.RoundingMode.RN", "cuda.tile.RoundingMode.RN"),
        ("import numpy", "numpy.float32", "numpy.float32"),
        ("from math import *", "pow(inf)", "math.pow(math.inf)"),
        ("from cuda.tile import *", "sum(range(int32))", "cuda.tile.sum(builtins.range(cuda.tile.int32))"),
        ("from torch import *", "float32", "torch.float32"),
        ("range = ct.arange", "range", "cuda.tile.arange"),
    ],
)
def test_external_names(statement: str, text: str, expected: str, write: Write) -> None:
    path = write({"main.py": f"{HEAD}{statement}\n@ct.kernel\ndef k(a):\n    return {text}\n"})
    assert print_expr(kernel_of(path).body[0].value) == expected  # type: ignore[attr-defined]


def test_a_module_that_is_not_found_says_where_it_was_looked_for(write: Write) -> None:
    for name, where in (("main.py", "beside the file"), ("pkg/main.py", "beside the package `pkg`")):
        path = write({**PACKAGE, name: f"import helpers\n{KERNEL}    return helpers.double(a)\n"})
        value = kernel_of(path).body[0].value.func  # type: ignore[attr-defined]
        looked_for = f"helpers.py and helpers/__init__.py {where}, and for an installed package"
        found = f"the name `helpers.double`, whose module `helpers` isn't found (looked for {looked_for})"
        assert value.what == found


def test_locals_shadow(write: Write) -> None:
    text = (
        HEAD + "x = 1\n\n\ndef f():\n    pass\n\n\n@ct.kernel\ndef k(ct, f):\n    y = x\n    x = f(ct.x)\n    len = 1\n"
    )
    function = kernel_of(write({"m.py": text + "    return len\n"}))
    assert not [n for n in nodes(function.body) if isinstance(n, hir.Global | hir.External)]


# What a kernel is


@pytest.mark.parametrize(
    ("head", "decorator"),
    [
        ("import cuda.tile as ct", "ct.kernel"),
        ("import cuda.tile", "cuda.tile.kernel"),
        ("from cuda import tile", "tile.kernel"),
        ("from cuda.tile import kernel", "kernel"),
        ("from cuda.tile import kernel as device", "device"),
        ("from cuda.tile import *", "kernel"),
        ("import cuda.tile as ct\njit = ct.kernel", "jit"),
        ("try:\n    import cuda.tile as ct\nexcept ImportError:\n    ct = None", "ct.kernel"),
    ],
)
@pytest.mark.parametrize("arguments", ["", "()", "(occupancy=4, num_ctas=2)"])
def test_kernel_decorators(head: str, decorator: str, arguments: str, write: Write) -> None:
    text = f"{head}\n\n\ndef identity(f):\n    return f\n\n\n@identity\n@{decorator}{arguments}\ndef k(a):\n    pass\n"
    loaded = load_program(write({"m.py": text}))
    assert kernel_names(loaded) == ("k",)
    hints = [(name, print_expr(value)) for name, value in decorator_hints(loaded.modules["m"].functions["k"])]
    assert hints == ([("occupancy", "4"), ("num_ctas", "2")] if "occ" in arguments else [])


def test_nothing_is_executed_and_nothing_unreached_is_lowered(write: Write, tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    text = f"open({str(mark)!r}, 'w')\n{KERNEL}    pass\n\n\ndef host():\n    with open('x') as f:\n        pass\n"
    loaded = load_program(write({"m.py": text}))
    assert list(loaded.modules["m"].functions) == ["k"]
    assert not mark.exists()


# Files that can't be translated


def test_missing_file(tmp_path: Path) -> None:
    found = failure(tmp_path / "absent.py")
    assert (found.code, found.span.file) == ("E0101", "absent.py")
    assert failure(tmp_path).code == "E0101"
    assert found.help


@pytest.mark.parametrize(
    ("content", "code", "line", "column"),
    [
        (b"x = 1\ny = (2\n", "E0102", 2, 5),
        (b"if x:\npass\n", "E0102", 2, 1),
        (b"x = 1\n\xff\xfe\n", "E0102", 2, 1),
        (b"x = '\x00'\n", "E0102", 1, 1),
        (b"", "E0103", 1, 1),
        (b"\n\n", "E0103", 1, 1),
        (b"import cuda.tile as ct\n\n\ndef f():\n    pass\n", "E0103", 1, 1),
        (b"@kernel\ndef f():\n    pass\n", "E0103", 1, 1),
    ],
)
def test_bad_files(content: bytes, code: str, line: int, column: int, tmp_path: Path) -> None:
    path = tmp_path / "bad.py"
    path.write_bytes(content)
    found = failure(path)
    assert (found.code, found.span.line, found.span.column, found.span.file) == (code, line, column, "bad.py")
    assert found.help
    assert str(tmp_path) not in found.message


def test_deep_nesting_is_a_diagnostic(write: Write) -> None:
    path = write({"m.py": KERNEL + f"    x = {' + '.join(['a'] * 2000)}\n"})
    assert (failure(path).code, failure(path).span.line) == ("E0902", 1 + KERNEL.count("\n"))


def test_odd_but_valid_files(tmp_path: Path) -> None:
    path = tmp_path / "m.py"
    body = KERNEL + "    x = a\n    return x  # end"
    path.write_bytes(b"\xef\xbb\xbf" + body.replace("\n", "\r\n").encode())
    function = kernel_of(path)
    assert function.body[1].trailing == "end"
    assert function.body[1].span.line == 7
    path.write_text(KERNEL.replace("def", "def  ") + "\tx = a\f\n\treturn x\n", encoding="utf-8")
    assert kernel_of(path).body[1].span.column == 2


# Caching and printing


def test_a_changed_file_is_read_again(write: Write) -> None:
    main = "from helper import f\n" + KERNEL + "    return f(a)\n"
    path = write({"helper.py": "def f(x):\n    return x\n", "m.py": main})
    first = load_program(path)
    assert load_program(path) is first
    write({"helper.py": "def f(x):\n    return x + 1\n"})
    second = load_program(path)
    assert print_program(second) != print_program(first)


def test_every_code_is_described() -> None:
    used = set(expressions.UNSUPPORTED.values()) | set(lower.HOLES.values())
    assert used <= set(CONSTRUCTS)
    for name in ("expressions", "lower", "program", "resolve"):
        path = Path(lower.__file__).with_name(f"{name}.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith("E02"):
                assert node.value in CONSTRUCTS


def test_operator_tables_are_complete() -> None:
    def concrete(base: str) -> set[type[cst.CSTNode]]:
        root = getattr(cst, base)
        classes = [c for c in vars(cst).values() if isinstance(c, type) and issubclass(c, root)]
        return {c for c in classes if not c.__name__.startswith("Base")}

    assert set(expressions.BINARY) == concrete("BaseBinaryOp")
    assert set(expressions.UNARY) == concrete("BaseUnaryOp")
    assert set(expressions.BOOLEANS) == concrete("BaseBooleanOp")
    assert set(expressions.COMPARISONS) | {cst.In, cst.NotIn} == concrete("BaseCompOp")
    assert set(lower.AUGMENTED) == concrete("BaseAugOp")
    assert all(hasattr(__import__("operator"), name) for name in expressions.BINARY.values())
    assert all(hasattr(builtins, name) for name in expressions.CONVERSIONS.values())


# TileGym, where it is installed

TILEGYM = importlib.util.find_spec("tilegym")


@pytest.mark.skipif(TILEGYM is None, reason="tilegym is not installed")
def test_tilegym_lowers() -> None:
    assert TILEGYM is not None
    assert TILEGYM.origin is not None
    folder = Path(TILEGYM.origin).parent / "ops" / "cutile"
    kernels = 0
    for path in sorted(folder.rglob("*.py")):
        try:
            loaded = load_program(path)
        except TranspileError as failed:
            assert failed.diagnostic.code == "E0103", path
            continue
        kernels += len(loaded.kernels)
        bad = [n for m in loaded.modules.values() for n in nodes((m.functions, m.constants))
               if isinstance(n, hir.Hole | hir.Unsupported)]  # fmt: skip
        # The factory of nvfp4 takes the occupancy as a variable.
        assert [n.code for n in bad] == (["E0231"] if path.name == "nvfp4_quantize.py" else [])
    assert kernels == 74
