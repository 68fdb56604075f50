"""What the tests of `transpile fill` share: kernels with Holes, clients that play, folders."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from transpiler import toolkit
from transpiler.agents.clients import ClientError, ClientReply
from transpiler.agents.prompt import Prompt
from transpiler.agents.task import Answer
from transpiler.agents.verdicts import Reply
from transpiler.batch import Options, run_jobs
from transpiler.emit.extras import render_crate_files
from transpiler.jobs import KernelJob, OperatorJob
from transpiler.overrides import ResultType
from transpiler.selection import Selection
from transpiler.spec import ArraySpec, Specialization
from transpiler.store import OutputFolder

KERNELS = Path(__file__).parent / "kernels" / "holes.py"
FLOATS = ArraySpec(dtype="float32", ndim=1, shape_divisible_by=(16,), base_addr_divisible_by=16)
SAME = (ResultType(dtype="$0", shape="$0"),)


def array(dtype: str = "float32", ndim: int = 1) -> ArraySpec:
    """An array whose extents and address are multiples of 16."""
    return ArraySpec.model_validate(
        {"dtype": dtype, "ndim": ndim, "shape_divisible_by": 16, "base_addr_divisible_by": 16}
    )


def specialization(name: str = "s", x: ArraySpec = FLOATS, y: ArraySpec = FLOATS, **constants: int) -> Specialization:
    """A specialization of a kernel (x, y, constants..)."""
    params = {"x": x, "y": y, **{k: {"value": v} for k, v in (constants or {"N": 64}).items()}}
    return Specialization.model_validate({"name": name, "params": params})


def job(source: Path, kernels: dict[str, Iterable[Specialization]], *without: str) -> OperatorJob:
    """A job with rules switched off."""
    made = tuple(KernelJob(name, tuple(specs)) for name, specs in kernels.items())
    return OperatorJob(source.stem, source, source.name, made, selection=Selection(tuple(without)))


def folder(path: Path, one: OperatorJob) -> Path:
    """What `transpile --no-verify` writes for a job."""
    results = run_jobs([one], Options(verify=False))
    OutputFolder(path).write(list(results.translations.values()), toolkit.versions(), render_crate_files)
    return path


def answered(rust: str, results: tuple[ResultType, ...] = SAME, tokens: int = 100) -> ClientReply:
    """A good reply."""
    return ClientReply(reply=Reply(outcome="answered", answer=Answer(rust=rust, results=results)), tokens=tokens)


Play = ClientReply | ClientError | BaseException | Callable[[Prompt], ClientReply]


class ScriptedClient:
    """Plays replies in order, for each construct by its name; the last one is played for ever."""

    def __init__(self, name: str = "scripted", **plays: list[Play]) -> None:
        self.name = name
        self.plays = {construct.replace("__", "."): list(rows) for construct, rows in plays.items()}
        self.asked: list[Prompt] = []

    def ask(self, prompt: Prompt, *, seconds: float, budget: int) -> ClientReply:
        """Play the next reply."""
        del seconds, budget
        self.asked.append(prompt)
        name = prompt.task.hole.name
        rows = self.plays.get(name) or self.plays.get("any", [])
        play = rows.pop(0) if len(rows) > 1 else rows[0]
        if isinstance(play, BaseException):
            raise play
        return play(prompt) if callable(play) else play
