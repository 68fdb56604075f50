"""Reference export: a cuTile Python kernel to Tile IR bytecode, without torch, a GPU or the user's module.

Parent side (cheap to import, cuda.tile is never imported here)::

    from transpiler.reference.source import SourceTree          # parse a file and the modules beside it
    from transpiler.reference.closure import Closure, extract_closure
    from transpiler.reference.export import Exported, ReferenceExporter, ReferenceRejected

    tree = SourceTree(Path("softmax.py"))                       # parses once, serves every kernel of the file
    tree.kernels()                                              # -> (KernelInfo(name, line, params, hints), ...)
    closure = extract_closure(tree, "_softmax_kernel")          # E02xx TranspileError where a name can't be followed
    closure.diagnostics                                         # warnings (W02xx)
    Path("k.closure.py").write_text(closure.to_text())          # self-contained; `Closure.from_text` reads it back

    with ReferenceExporter(time_limit=60.0) as exporter:        # one warm worker process, restarted when it dies
        try:
            exported = exporter.export(closure, specialization, target="sm_90")
            exported.bytecode, exported.symbol, exported.seconds
        except ReferenceRejected as refusal:                    # a TranspileError (E0220): the reference's own refusal
            refusal.diagnostic, refusal.kind                    # span = file and line of the user's source
        # other failures are TranspileErrors: E0210 time limit, E0211 worker died, E0212 specialization doesn't fit

An exporter is not for use by several threads at once: give each its own.
File names in the bytecode's locations are the closure's display paths (``tilegym/ops/cutile/softmax.py``), the lines
are those of the original file.

For benchmarks ``python -m transpiler.reference.once CLOSURE SPECIALIZATIONS.json`` exports all specializations of one
kernel in one fresh process.  ``worker``, ``exporting``, ``load``, ``constraints`` and ``torch_stub`` run in the worker
only.
"""
