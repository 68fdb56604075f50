"""``python -m mutation``: put every kind of fault into the kernels of a corpus, and print who finds them."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from fault_kinds import KINDS

from mutation.bench import Bench, Mutant, Result
from transpiler.jobs import OperatorJob, corpus_jobs
from transpiler.verify import Judge
from transpiler.workers import Crash, Handler, Pool


@dataclass(frozen=True)
class Task:
    """One kernel at one specialization, and what to do with it."""

    job: OperatorJob
    kinds: range
    places: int
    tries: int
    every: int

    @property
    def name(self) -> str:
        """The operator, the kernel and the specialization."""
        (kernel,) = self.job.kernels
        return f"{self.job.name}/{kernel.name} [{kernel.specializations[0].name}]"


def tasks(corpus: str, checks: int, options: argparse.Namespace) -> Iterator[Task]:
    """The first ``checks`` specializations of each kernel of a corpus."""
    for job in corpus_jobs(corpus):
        for kernel in job.kernels:
            for one in kernel.specializations[:checks]:
                alone = replace(job, kernels=(replace(kernel, specializations=(one,)),))
                yield Task(alone, range(len(KINDS)), options.places, options.tries, options.execute)


@contextmanager
def _handler() -> Iterator[Handler]:
    with Judge() as judge:

        def done(task: Task) -> Result:
            try:
                return Bench(judge, task.job).run(task.kinds, task.places, task.tries, task.every)
            except ValueError as reason:
                return Result(task.name, [], reason=str(reason))

        yield done


def run(work: Sequence[Task], jobs: int, kept: Path | None = None) -> tuple[list[Result], list[str]]:
    """Do all tasks; returns the results and what crashed. ``kept`` holds results that needn't be found again."""
    results, crashes = _kept(kept), list[str]()
    known = {result.kernel for result in results}
    work = [task for task in work if task.name not in known]
    with Pool(jobs, _handler, time_limit=1800) as pool:
        for task in work:
            pool.submit(task)
        for task, result in pool.results():
            if isinstance(result, Crash):
                crashes.append(f"{task.job.name}/{task.job.kernels[0].name}: {result.how}")
            else:
                results.append(result)
                if kept is not None:
                    with kept.open("a") as file:
                        file.write(json.dumps(asdict(result)) + "\n")
                print(f"{len(results):3} of {len(work) + len(known)}: {result.kernel}: {len(result.mutants)} mutants",
                      file=sys.stderr, flush=True)  # fmt: skip
    return sorted(results, key=lambda r: r.kernel), crashes


def _kept(path: Path | None) -> list[Result]:
    """The results that an interrupted run wrote."""
    if path is None or not path.is_file():
        return []
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    return [Result(**{**row, "mutants": [Mutant(**m) for m in row["mutants"]]}) for row in rows]


def missed(mutants: Sequence[Mutant]) -> list[Mutant]:
    """Mutants that nobody found and that nothing shows to be equivalent."""
    return [m for m in mutants if m.found == "nothing" and m.executed != "found" and not m.equivalent]


def summary(results: Sequence[Result]) -> dict[str, object]:
    """The figures."""
    mutants = [m for r in results for m in r.mutants]
    counted = [m for m in mutants if not m.equivalent]
    executed = [m for m in counted if m.executed != "not executed"]
    visible = [m for m in executed if m.found == "graph"]
    return {
        "kernels": len({r.kernel.split(" [")[0] for r in results if r.mutants}), "checks": len(results),
        "kinds": len({m.kind for m in mutants}), "kinds_in_all": len(KINDS), "mutants": len(counted),
        "found_by_graph": sum(m.found == "graph" for m in counted),
        "found_by_facts_and_hints": sum(m.found == "facts and hints" for m in counted),
        "executed": len(executed), "found_by_execution": sum(m.executed == "found" for m in executed),
        "graph_differs_and_executed": len(visible),
        "graph_differs_and_found_by_execution": sum(m.executed == "found" for m in visible),
        "found_by_execution_alone": sum(m.executed == "found" and m.found == "nothing" for m in counted),
        "missed": len(missed(mutants)),
        "equivalent": dict(Counter(m.equivalent for m in mutants if m.equivalent).most_common()),
        "identical_tile_ir": sum(r.identical for r in results), "refused": sum(r.refused for r in results),
    }  # fmt: skip


def report(results: Sequence[Result], wall: float) -> str:
    """The figures for people: a row a kind, then the totals."""
    mutants = [m for r in results for m in r.mutants]
    head = f"{'kind of fault':<48}{'mutants':>8}{'graph':>7}{'facts':>7}{'run':>6}{'found':>7}{'equiv':>7}{'missed':>8}"
    lines = [head]
    for kind in KINDS:
        mine = [m for m in mutants if m.kind == kind.name]
        ran = [m for m in mine if m.executed != "not executed"]
        lines.append(
            f"{kind.name:<48}{len(mine):8}{sum(m.found == 'graph' for m in mine):7}"
            f"{sum(m.found == 'facts and hints' for m in mine):7}{len(ran):6}"
            f"{sum(m.executed == 'found' for m in ran):7}{sum(bool(m.equivalent) for m in mine):7}{len(missed(mine)):8}"
        )
    figures = summary(results)
    total = max(int(str(figures["mutants"])), 1)

    def share(name: str, of: str = "mutants") -> str:
        return (
            f"{figures[name]} of {figures[of]} ({100 * int(str(figures[name])) / max(int(str(figures[of])), 1):.1f} %)"
        )

    lines += [
        "", f"{figures['kernels']} kernels, {figures['checks']} checks, {figures['kinds']} of {len(KINDS)} kinds apply",
        f"found by comparing graphs:  {share('found_by_graph')}",
        f"found by facts and hints:   {share('found_by_facts_and_hints')}",
        f"found by execution:         {share('found_by_execution', 'executed')} that were executed; of those whose "
        f"graph differs {share('graph_differs_and_found_by_execution', 'graph_differs_and_executed')}",
        f"found in all:               {total - int(str(figures['missed']))} of {total}",
        f"not counted: {figures['refused']} edits that cutile refuses, {figures['identical_tile_ir']} that leave the "
        f"Tile IR as it is, {sum(bool(m.equivalent) for m in mutants)} equivalent mutants",
        *(f"equivalent: {m.kernel}: {m.kind}: {m.equivalent}: {m.difference}" for m in mutants if m.equivalent),
        *(f"MISSED: {m.kernel}: {m.kind}: {m.difference}" for m in missed(mutants)),
        *(f"{r.kernel}: {r.reason}" for r in results if r.reason), f"{wall:.0f} s",
    ]  # fmt: skip
    return "\n".join(lines)


def main() -> int:
    """Status 1 when a mutant was missed."""
    parser = argparse.ArgumentParser(prog="mutation", description=__doc__)
    parser.add_argument("corpus", nargs="?", default="tilegym-24")
    parser.add_argument("--checks", type=int, default=1, help="specializations of each kernel")
    parser.add_argument("--places", type=int, default=1, help="places of each kind in a kernel")
    parser.add_argument("--tries", type=int, default=5, help="places to look at for one that compiles")
    parser.add_argument("--execute", type=int, default=10, help="execute one mutant of so many; 0: none")
    parser.add_argument("-j", "--jobs", type=int, default=2)
    parser.add_argument("--resume", action="store_true", help="go on where an interrupted run ended")
    parser.add_argument("-o", "--out", type=Path, default=Path("out/mutation"))
    options = parser.parse_args()
    started = time.monotonic()
    options.out.mkdir(parents=True, exist_ok=True)
    kept = options.out / "results.jsonl"
    if not options.resume:
        kept.unlink(missing_ok=True)
    results, crashes = run(list(tasks(options.corpus, options.checks, options)), options.jobs, kept)
    text = "\n".join([report(results, time.monotonic() - started), *crashes])
    (options.out / "figures.txt").write_text(text + "\n")
    data = {"figures": summary(results), "crashes": crashes, "results": [asdict(r) for r in results]}
    (options.out / "figures.json").write_text(json.dumps(data, indent=1) + "\n")
    print(text)
    return int(bool(crashes or missed([m for r in results for m in r.mutants])))


if __name__ == "__main__":
    sys.exit(main())
