"""Kernels that the reference refuses, at whatever stage: the verdict is `rejected`, with the reason and the place."""

from __future__ import annotations

from pathlib import Path

import pytest

from transpiler.batch import Options, run_jobs
from transpiler.diagnostics import Diagnostic, Span, TranspileError
from transpiler.jobs import KernelJob, OperatorJob
from transpiler.reference import refusal
from transpiler.spec import ArraySpec, ConstantSpec, ParamSpec, ScalarSpec, Specialization
from transpiler.verify import CheckResult

HEAD = """\
import cuda.tile as ct


@ct.kernel
def kernel(x, y, n, N: ct.Constant[int]):
"""


def judged(tmp_path: Path, *lines: str) -> CheckResult:
    """Check a kernel over a 2-D and a 4-D array of float32."""
    path = tmp_path / "kernel.py"
    path.write_text(HEAD + "".join(f"    {line}\n" for line in lines))
    params: dict[str, ParamSpec] = {
        "x": ArraySpec(dtype="float32", ndim=2), "y": ArraySpec(dtype="float32", ndim=4),
        "n": ScalarSpec(dtype="int32"), "N": ConstantSpec(value=16),
    }  # fmt: skip
    one = Specialization(name="one", params=params)
    results = run_jobs([OperatorJob("kernel", path, "kernel.py", (KernelJob("kernel", (one,)),))], Options(workers=1))
    (result,) = results.checks.values()
    return result


@pytest.mark.parametrize(
    ("lines", "code", "line", "words"),
    [
        (["ct.store(x, (0, 0), ct.load(x, (0, 0), (N, 24)))"], "E0220", 6, "not a power of two"),
        (["ct.store(y, (0, 0, 0, 0), ct.load(x, (0, 0), (N, N)))"], "E0221", 6, "tensor_view of rank 4 and tiles of"),
        (["t = ct.load(x, (0, 0), (N, N))", "u = t.astype(ct.uint32) // ct.uint32(3)",
          "ct.store(x, (0, 0), u.astype(x.dtype))"], "E0221", 7, "'cuda_tile.divi' op rounding mode"),
    ],
    ids=["front end", "malformed view", "ill-formed operation"],
)  # fmt: skip
def test_rejected(tmp_path: Path, lines: list[str], code: str, line: int, words: str) -> None:
    result = judged(tmp_path, *lines)
    (diagnostic,) = result.diagnostics
    assert (result.verdict, diagnostic.code, diagnostic.span.file, diagnostic.span.line) == (
        "rejected", code, "kernel.py", line)  # fmt: skip
    assert words in diagnostic.message


def test_a_hole_in_a_kernel_that_the_reference_takes_is_unmapped(tmp_path: Path) -> None:
    result = judged(tmp_path, "i = ct.argmax(ct.load(x, (0, 0), (N, N)), axis=1)",
                    "ct.store(x, (0, 0), i.astype(x.dtype)[:, None])")  # fmt: skip
    assert (result.verdict, [d.code for d in result.diagnostics]) == ("unmapped", ["E0302"])


def test_our_refusal_of_a_kernel_that_only_the_assembler_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    own = Diagnostic("E0401", "a reason", "", "error", Span("kernel.py", 7, 5))

    def refuse(code: str) -> None:
        def assemble(*_: object, **__: object) -> bytes:
            raise TranspileError(Diagnostic(code, "the assembler refuses the kernel for sm_90: why", "", "error"))

        monkeypatch.setattr(refusal, "assemble", assemble)

    refuse("E0660")
    found = refusal.assembler_refusal(b"", "sm_90", "kernel", own)
    assert found is not None
    assert (found.code, found.span) == ("E0221", own.span)
    assert found.message.endswith("the assembler refuses the kernel for sm_90: why; a reason")
    refuse("E0650")
    with pytest.raises(TranspileError):
        refusal.assembler_refusal(b"", "sm_90", "kernel", own)
    monkeypatch.setattr(refusal, "assemble", lambda *_, **__: b"a cubin")
    assert refusal.assembler_refusal(b"", "sm_90", "kernel", own) is None
