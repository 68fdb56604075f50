"""What an argument of ``batch`` stands for, without reading manifests or sources again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from transpiler.cache import fingerprint
from transpiler.cache.folder import CacheFolder, key_of
from transpiler.inputs import Inputs, Lookups
from transpiler.resources import corpus_dir
from transpiler.shards import Names
from transpiler.sources import SourcesFolder

if TYPE_CHECKING:
    from transpiler.jobs import OperatorJob

_KIND = "listings"


@dataclass(frozen=True)
class Listed:
    """An operator of an argument: ``digest`` stands for its source's place, its specializations and its target."""

    argument: str
    name: str
    path: Path
    shown: str
    kernels: tuple[tuple[str, tuple[str, ...]], ...]
    digest: str

    @property
    def names(self) -> Names:
        """The operator's kernels and the names of their specializations."""
        return self.name, self.kernels

    @property
    def check_count(self) -> int:
        """How many checks the operator has."""
        return sum(len(names) for _, names in self.kernels)


def find_listing(
    folder: CacheFolder, argument: str, target: str | None, sources: SourcesFolder | None = None,
    explore: bool = False,
) -> tuple[Listed, ...] | None:  # fmt: skip
    """Return an argument's operators where nothing that they were read from has changed."""
    row = folder.get_json(_KIND, _key(argument, target, sources, explore))
    if row is None:
        return None
    try:
        if not Inputs.from_json(row["inputs"]).unchanged():
            return None
        return tuple(_listed(argument, one) for one in row["operators"])
    except (KeyError, TypeError, ValueError):
        return None


def store_listing(
    folder: CacheFolder, argument: str, target: str | None, found: Sequence[Listed], lookups: Lookups, since_ns: int,
    sources: SourcesFolder | None = None, explore: bool = False,
) -> None:  # fmt: skip
    """Remember an argument's operators."""
    inputs = lookups.inputs(since_ns=since_ns)
    if inputs is not None:
        rows = [[one.name, str(one.path), one.shown, one.kernels, one.digest] for one in found]
        folder.put_json(
            _KIND, _key(argument, target, sources, explore), {"inputs": inputs.to_json(), "operators": rows}
        )


def listed(argument: str, job: OperatorJob) -> Listed:
    """List a job."""
    kernels = tuple((kernel.name, tuple(s.name for s in kernel.specializations)) for kernel in job.kernels)
    given = [[k.name, [s.model_dump_json() for s in k.specializations], [repr(d) for d in k.diagnostics],
              repr(k.uncovered)] for k in job.kernels]  # fmt: skip
    digest = key_of(job.name, str(job.path.absolute()), _package(job.path), job.display, job.target, given,
                    repr(job.problem))  # fmt: skip
    return Listed(argument, job.name, job.path.absolute(), job.shown, kernels, digest)


def _listed(argument: str, row: Any) -> Listed:
    name, path, shown, kernels, digest = row
    return Listed(argument, name, Path(path), shown, tuple((k, tuple(names)) for k, names in kernels), digest)


def _key(argument: str, target: str | None, sources: SourcesFolder | None, explore: bool) -> str:
    """Name what an argument stands for: in other sources the same manifest is another listing."""
    root = [str(sources.root.resolve()), sources.shown] if sources is not None else []
    return key_of(fingerprint.tool(), argument, str(Path.cwd()), str(corpus_dir()), target, _package(Path(argument)),
                  root, explore)  # fmt: skip


def _package(path: Path) -> list[str]:
    """The names of the packages that hold a file: they decide what its imports mean and how it is shown."""
    names = []
    folder = path.absolute().parent
    while (folder / "__init__.py").is_file():
        names.append(folder.name)
        folder = folder.parent
    return names
