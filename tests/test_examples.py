"""The example kernels: their launches are enough to translate and prove them."""

from __future__ import annotations

from collections import Counter

import pytest

from transpiler.batch import Options, run_jobs
from transpiler.jobs import OperatorJob, corpus_jobs
from transpiler.resources import corpus_dir

JOBS = {job.name: job for job in corpus_jobs("examples")}


def verdicts(job: OperatorJob) -> Counter[str]:
    return Counter(result.verdict for result in run_jobs([job], Options(workers=1)).checks.values())


def test_every_example_is_in_the_corpus() -> None:
    assert sorted(JOBS) == sorted(path.stem for path in (corpus_dir() / "examples").glob("*.py"))
    assert all(kernel.specializations for job in JOBS.values() for kernel in job.kernels)


@pytest.mark.parametrize("job", list(JOBS.values()), ids=list(JOBS))
def test_every_kernel_of_an_example_is_launched(job: OperatorJob) -> None:
    assert not [d for kernel in job.kernels for d in kernel.diagnostics if d.code in ("W0270", "W0271", "W0272")]


@pytest.mark.parametrize("name", ["histogram", "int8_quant", "segment_sum", "streamk_gemm"])
def test_an_example_is_proved(name: str) -> None:
    job = JOBS[name]
    assert verdicts(job) == {"proved": job.check_count}


def test_argmax_is_a_hole_that_says_why() -> None:
    results = run_jobs([JOBS["top1"]], Options(workers=1))
    (plan,) = results.plans()
    checks = [check for kernel in plan.kernels for entry in kernel.entries for check in entry.checks]
    assert {check.outcome for check in checks} == {"unmapped"}
    assert all("reduction of tuples" in d.message for check in checks for d in check.diagnostics)
