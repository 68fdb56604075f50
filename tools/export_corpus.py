"""Export every check of a corpus with the reference compiler alone, and say what it refuses.

python tools/export_corpus.py CORPUS
"""

from __future__ import annotations

import sys
import time
from collections import Counter

from transpiler.corpora import load_corpus
from transpiler.diagnostics import TranspileError
from transpiler.reference.closure import extract_closure
from transpiler.reference.export import ReferenceExporter, ReferenceRejected
from transpiler.reference.source import SourceTree


def main(name: str) -> None:
    """Export the corpus; one line for each check that isn't exported."""
    corpus = load_corpus(name)
    counts: Counter[str] = Counter()
    started = time.perf_counter()
    with ReferenceExporter() as exporter:
        for operator in corpus.operators:
            tree = SourceTree(operator.source.path, operator.source.display)
            for kernel in operator.kernels:
                closure = extract_closure(tree, kernel.name)
                for specialization in kernel.specializations:
                    try:
                        exporter.export(closure, specialization, corpus.target)
                        counts["exported"] += 1
                    except TranspileError as exc:
                        counts["refused" if isinstance(exc, ReferenceRejected) else "failed"] += 1
                        span = exc.diagnostic.span
                        print(f"{span.file}:{span.line}: {kernel.name} [{specialization.name}]: {exc}")
    kernels = sum(len(o.kernels) for o in corpus.operators)
    print(
        f"{len(corpus.operators)} operators, {kernels} kernels, {dict(counts)}, {time.perf_counter() - started:.1f} s"
    )


if __name__ == "__main__":
    main(sys.argv[1])
