"""Every diagnostic code: what it means and what to do. ``transpile explain`` and docs/diagnostics.md are made of it.

E01 reading files, E02 Python and specializations, E03 rules, E04 types, E06 emission and tools, E07 verdicts,
E08 the command line and its files, E09 mistakes of transpile itself; W are warnings.
"""

from __future__ import annotations

from dataclasses import dataclass

from transpiler.frontend.constructs import CONSTRUCTS


@dataclass(frozen=True)
class Code:
    """One code: a title, what it means, and what to do."""

    title: str
    meaning: str
    remedy: str


_REPORT = "This is a gap or a mistake in transpile, not in the kernel: please report it with the kernel."
_JUDGE = (
    "The judge knows only what it has a meaning for, so that nothing is waved through. The check ends as `error`; "
    "it says nothing about the translation."
)
_CONSTRUCT = (
    "Kernels are a subset of Python. The statement or expression has no meaning in a tile program, so it became a "
    "Hole: the place is marked in the Rust, which doesn't compile there. What uses its value is left out, and so is "
    "what nothing else uses; the rest of the kernel is translated. The verdict is `unmapped`, the exit status 3. Where "
    "the kernel is ill-typed as well, there is no Rust of it: then the verdict is `error`, the exit status 1."
)

_SPEC_EXAMPLE = """docs/spec.schema.json is the schema. A SPEC.toml looks like this:

    name = "mine"
    [[operators]]
    name = "softmax"
    path = "softmax.py"
    [[operators.kernels]]
    name = "softmax_kernel"
    [[operators.kernels.specializations]]
    name = "f16_4096"
    params.output = {dtype = "float16", ndim = 2, shape_divisible_by = 16, base_addr_divisible_by = 16}
    params.input = {dtype = "float16", ndim = 2, shape_divisible_by = 16, base_addr_divisible_by = 16}
    params.n = "int32"      # a run-time scalar
    params.TILE = 1024      # a ct.Constant

Every parameter of the kernel is named. Give the file with `--spec SPEC.toml`."""

_OWN: dict[str, Code] = {
    "E0101": Code("the file can't be read", "The source file is missing, is a folder, or may not be read.",
                  "Check the path and its permissions."),
    "E0102": Code("not UTF-8, or not Python", "The file was read but is not a Python program. The line and column are "
                  "where Python's own parser stopped.", "Correct the syntax error."),
    "E0103": Code("no kernels", "The file has no function decorated with `@ct.kernel` (or passed to `ct.kernel`), or "
                  "is empty.", "Give the file that defines the kernels; a file that imports them isn't enough."),
    "E0201": Code("unknown kernel", "A kernel was named that the file doesn't define.",
                  "Use one of the names that the message lists."),
    "E0202": Code("a kernel's closure can't be followed", "The reference compiler is given the kernel and what it "
                  "uses, never the whole module. One of those names could not be followed.",
                  "Define the name at module level, once."),
    "E0210": Code("the reference compiler took too long", "cuda-tile did not finish a check within the time limit.",
                  "Check a smaller specialization."),
    "E0211": Code("the reference compiler crashed", "The worker process that runs cuda-tile ended. Other checks went "
                  "on in a new one.", "Report it to cuda-tile with the kernel and the specialization."),
    "E0212": Code("the specialization doesn't fit the kernel", "A specialization has to describe each parameter of the "
                  "kernel, as an array, a run-time scalar or a constant, the way its annotations say.",
                  "Correct the SPEC.toml; `transpile FILE.py --variants` shows what the kernel decides on."),
    "E0213": Code("cuda-tile can't be used", "The reference compiler isn't installed, or doesn't start.",
                  "Install cuda-tile and nvidia-cuda-tileiras into the environment that runs transpile."),
    "E0214": Code("a stored closure is damaged", "A file below DIR/<operator>/reference isn't what transpile wrote.",
                  "Translate the source again."),
    "E0215": Code("a constant is computed by code that isn't run", "Translating never runs the user's module. A value "
                  "that the kernel uses could only be found by running it.",
                  "Make it a literal, or pass it as a ct.Constant parameter."),
    "E0216": Code("a name is bound in several places", "Which value the kernel sees depends on running the module.",
                  "Bind the name once, without a condition."),
    "E0217": Code("a value of the enclosing function", "The kernel uses a variable of the function that makes it.",
                  "Pass it to the kernel as a ct.Constant parameter."),
    "E0218": Code("a constant can't be evaluated", "A module-level constant that the kernel uses raised an exception.",
                  "Make it a literal."),
    "E0220": Code("the reference compiler refuses the kernel", "cuTile Python itself can't compile this kernel for "
                  "this specialization. There is nothing to compare with: the verdict is `rejected`, which counts as "
                  "success (exit status 0).", "Correct the kernel or the specialization, if it was meant to work."),
    "E0221": Code("NVIDIA's tools refuse what the reference compiler makes", "cuda-tile compiles this kernel, but to "
                  "Tile IR that is ill-formed or that the assembler doesn't take, so it can't run. There is nothing to "
                  "compare with: the verdict is `rejected`, which counts as success (exit status 0).",
                  "Correct the kernel or the specialization, if it was meant to work."),
    "E0270": Code("unknown corpus", "The argument is neither a corpus that comes with transpile, nor a manifest, nor a "
                  "Python file.", "Use a name that the message lists, or a path ending in .toml or .py."),
    "E0271": Code("an unusable manifest", "A SPEC.toml or corpus manifest can't be read, is no TOML, or doesn't fit "
                  "the schema. The line is where the trouble is.", _SPEC_EXAMPLE),
    "E0272": Code("a manifest contradicts itself", "An operator has two sources, or two specializations of a kernel "
                  "have one name.", "Give each its own name."),
    "E0273": Code("a manifest's source is missing", "The module or file that an operator names isn't there.",
                  "Install the package where transpile is installed (the message has the command; its sources are "
                  "read and never run, so what it depends on isn't needed), or correct the path (it is relative to "
                  "the manifest)."),
    "E0301": Code("no rule", "No rule says what this function, method or attribute is in cuTile Rust for these "
                  "operands. It became a Hole.", "Write it with operations that have a rule. Adding a rule is one row "
                  "in transpiler/rules and one case; `transpile fill DIR` fills the Hole without one."),
    "E0302": Code("not supported, for a reason", "There is a row for this construct, and it says why there is no "
                  "translation; often a limit of cutile. It became a Hole.", "The message names the reason; rewrite "
                  "the kernel without the construct."),
    "E0304": Code("64-bit indices", "An array is indexed with int64, which has no translation yet. It became a Hole.",
                  "Use arrays whose sizes and strides fit in 32 bits."),
    "E0305": Code("an array chosen at run time", "A name is one array (or list of arrays, or view) or another, "
                  "depending on a branch or on the iteration of a loop. In cutile 0.5 neither hands out arrays. It "
                  "became a Hole, where the name is used.", "Put the accesses into the branches, give each array its "
                  "own name, or choose between the tiles that are loaded."),
    "E0311": Code("a loop over something else than a range", "Only `for i in range(...)`, and ct.static_iter over "
                  "items that are known, has a translation. It became a Hole.", "Loop over range(...), or over a tuple "
                  "in ct.static_iter."),
    "E0401": Code("the kernel is ill-typed", "The operands don't fit: cuTile Python refuses this program too (then "
                  "the verdict is `rejected`, with its own message).", "Correct the kernel."),
    "E0601": Code("an operation has no Rust form", "The kernel was understood, but this operation with these "
                  "attributes can't be written in cutile. It became a Hole.", "Rewrite the kernel without it, or let "
                  "`transpile fill DIR` find a way to write it."),
    "E0602": Code("a constant has no Rust form", "The constant's value or type can't be written in cutile. It became a "
                  "Hole.", "Use another dtype, or compute the value."),
    "E0603": Code("a loop has no Rust form", "Loops in cutile count in some integer types only. It became a Hole.",
                  "Count in int32."),
    "E0605": Code("a return has no Rust form", "`return` inside a branch or loop can't be written in cutile here. It "
                  "became a Hole.", "Move the rest into the other branch."),
    "E0610": Code("an operation can't be raised", "`transpile fill --raise` writes the reference's Tile IR as cuTile "
                  "Rust, operation by operation, and cutile has nothing that compiles to this one. Nothing is "
                  "approximated: the kernel's Holes stay.", "The kernel needs a rule that does it another way, or a "
                  "version of cutile that can say this."),
    "E0620": Code("no C symbol for the kernel", "The kernel was translated, but can't be called through the C "
                  "interface. The host module goes on launching it with cuda.tile.",
                  "The message says which parameter or entry is in the way."),
    "E0621": Code("two entries for one call", "Two entries of a kernel are different programs, and the call that the "
                  "message describes fulfils the conditions of both: a launch would take the first, right or not. "
                  "What sets them apart when translating is not among their conditions.",
                  "It is a mistake of transpile: please report it. Until then, translate the kernel with only one of "
                  "the specializations."),
    "E0650": Code("a tool is missing", "A program or header of NVIDIA's packages, or the C compiler, isn't there.",
                  "Install the package that the message names."),
    "E0651": Code("an unusable toolkit", "TRANSPILE_TOOLKIT names a directory without what is needed, or the headers "
                  "lie in different environments.", "Unset TRANSPILE_TOOLKIT to use the installed packages."),
    "E0652": Code("a tool failed", "tileirdisasm or another tool of NVIDIA's did not run, or ended with an error.",
                  "Reinstall nvidia-cuda-tileiras; report it if that doesn't help."),
    "E0660": Code("the assembler refuses the kernel", "tileiras can't assemble this Tile IR for the architecture. When "
                  "it is the reference's own, the machine code is `refused`; the verdict stays what the comparison "
                  "said.", "Choose another architecture or another specialization."),
    "E0661": Code("the assembler took too long", "tileiras did not finish within the time limit.",
                  "Leave --cubin away for this kernel."),
    "E0662": Code("the machine code can't be read", "A cubin lacks a section that has to be compared. A missing "
                  "section is an error, never equality.", _REPORT),
    "E0681": Code("unknown Tile IR operation", _JUDGE, _REPORT),
    "E0682": Code("unknown part of a Tile IR operation", _JUDGE, _REPORT),
    "E0683": Code("malformed Tile IR text", _JUDGE, _REPORT),
    "E0684": Code("not a tile type", _JUDGE, _REPORT),
    "E0685": Code("wrong number of entries in the Tile IR", _JUDGE, _REPORT),
    "E0686": Code("undefined value in the Tile IR", _JUDGE, _REPORT),
    "E0689": Code("a type without a meaning for the interpreter", "Executing met an element type or a "
                  "view that it can't execute.", _REPORT),
    "E0688": Code("arguments that don't fit an entry", "The interpreter was given another number of arguments than the "
                  "entry has parameters.", _REPORT),
    "E0687": Code("control flow without a meaning for the judge", _JUDGE, _REPORT),
    "E0701": Code("the programs differ in structure", "The translation computes something else than the original, or "
                  "the judge can't see that it is the same. The smallest differing part is shown, with both lines. The "
                  "verdict is `differs`.", _REPORT),
    "E0702": Code("the programs differ in an effect", "A load, store, atomic, print or assertion is on one side only, "
                  "or in another order. The verdict is `differs`.", _REPORT),
    "E0703": Code("the programs differ in facts", "One side knows a divisor or a bound that the other one doesn't; "
                  "facts decide which code is generated. The verdict is `differs`.", _REPORT),
    "E0704": Code("the programs differ in hints", "Occupancy, clusters, latency or the like don't resolve to the same "
                  "values for the target. The verdict is `differs`.", _REPORT),
    "E0705": Code("the programs differ in their parameters", "A parameter is used on one side only, or has another "
                  "type. The verdict is `differs`.", _REPORT),
    "E0706": Code("the machine code differs", "Both sides were assembled, and the code or what belongs to it "
                  "(registers, shared memory, cluster) isn't the same. The comparison of Tile IR stands beside it.",
                  "A note, not a verdict; please report it."),
    "E0707": Code("the judge contradicts itself", "Before it compares two programs the judge compares each with a "
                  "copy of itself, values renamed and independent operations reordered. It found them different, so "
                  "the check ends as `error`; it says nothing about the translation.", _REPORT),
    "E0708": Code("the sides compute different results", "Both sides were executed on the same inputs "
                  "(`transpile verify --execute`), and memory isn't the same afterwards, or only our side does "
                  "something that has no meaning. The message has the inputs, made as small as could be, both values "
                  "and both lines.", _REPORT),
    "E0709": Code("executing contradicts the proof", "The comparison of graphs found both sides equal, and on some "
                  "inputs they compute different results. One of the two must be wrong: the judge, or the interpreter "
                  "that executes Tile IR. The check ends as `error`.", _REPORT),
    "E0711": Code("the generated Rust doesn't compile", "cutile's compiler refuses kernel.rs for this specialization.",
                  _REPORT),
    "E0801": Code("wrong usage", "The command line can't be understood.", "`transpile --help` and `transpile COMMAND "
                  "--help` show how to use it."),
    "E0803": Code("not an architecture", "Architectures are written as sm_90 or sm_100.", "Correct the name."),
    "E0804": Code("not a shard", "Shards are written I/N with I from 1 to N.", "Write for example --shard 2/4."),
    "E0805": Code("the spec says nothing of the file", "No operator of the SPEC.toml has this source file as its path "
                  "or its stem as its name.", "Correct the operator's `path` or `name`."),
    "E0806": Code("two sources for one operator", "An operator is called after its file, and so are its folder in DIR "
                  "and its module of the crate. Names that differ in case only, or as `addRows` and `add_rows` do, are "
                  "the same there. The C symbol of a kernel is both names, so `b_c` of `a` and `c` of `a_b` are one.",
                  "Translate the files one at a time, each with its own `-o`, or rename one."),
    "E0807": Code("nothing is known of a kernel's arguments", "Neither a spec nor a launch in the file says what the "
                  "kernel is called with, so there was nothing to translate it for.",
                  "Give a SPEC.toml with `--spec`; `transpile explain E0271` shows one."),
    "E0811": Code("not a report", "A file given to `merge` isn't JSON that transpile wrote.",
                  "Give the files that `--json` wrote."),
    "E0812": Code("reports that contradict each other", "The reports don't come from shards of one batch: another "
                  "corpus, other options, a whole run among shards, or a source, an entry or a verdict isn't the "
                  "same.", "Make the shards again from the same sources and versions."),
    "E0820": Code("the output folder holds something else", "transpile only writes into a new or empty folder, or one "
                  "that it wrote itself, so that nothing of yours is lost.",
                  "Choose another folder with `-o`, or move it away."),
    "E0821": Code("not a folder that transpile wrote", "`verify` needs the manifest.json in it.",
                  "Name the folder that was given to `-o`."),
    "E0822": Code("the output folder is damaged", "manifest.json or a file that it names can't be read, or another "
                  "version wrote it.", "Translate the sources again."),
    "E0823": Code("the output can't be written", "The disk is full, or the place may not be written to. Nothing was "
                  "changed.", "Choose another place."),
    "E0824": Code("a file beside kernel.rs was changed", "`transpile verify` checks kernel.rs as it is now. ffi.rs, "
                  "the bindings and the support code decide which entry runs and with what; one of them isn't as it "
                  "was written, so the proof doesn't cover what would run.", "Translate again, or undo the change."),
    "E0830": Code("the command can't be run", "`transpile record` could not start the command.",
                  "Check its name and path; everything after `--` is the command."),
    "E0831": Code("nothing was launched", "The command ended without launching a kernel, or every launch of it was one "
                  "that a SPEC.toml can't state. Nothing was written.",
                  "Run something that calls ct.launch, with a Python that reads PYTHONPATH."),
    "E0840": Code("the library can't be built", "cargo could not build the library of the folder; the message has what "
                  "the compiler says. A library that was built before is still there.",
                  "If a generated file was changed, translate again. Otherwise report it with the message."),
    "E0841": Code("no operators for a backend", "The folder with translated operators isn't there, or another one is "
                  "loaded in this process already.",
                  "Translate them with `transpile batch`, and name the folder in CUTILE_RS_DIR."),
    "E0842": Code("not a checkout of TileGym", "`transpile changeset` writes into a clone of TileGym's repository with "
                  "its Rust ports.", "Clone it, and name the folder with --into."),
    "E0843": Code("an unknown operator", "`transpile changeset` knows the operators of the corpus tilegym-tests.",
                  "Correct the name; the message lists them."),
    "E0844": Code("not a table of device times", "`transpile changeset --figures` reads what "
                  "benchmarks/gpu/device_time.py wrote.", "Name benchmarks/results/device_time.json."),
    "E0845": Code("nothing to build", "Every operator of the folder has a Hole, and Rust refuses a kernel.rs with one, "
                  "so the library would have no kernels. Nothing was built; exit status 3.",
                  "Fill the Holes (`transpile fill DIR`), or translate the kernels without one alone with `--kernel`."),
    "E0846": Code("work in the checkout would be lost", "Files that `transpile changeset` would write, edit or delete "
                  "have changes that aren't committed, or are untracked, and aren't what an earlier run wrote. Nothing "
                  "was written.", "Commit them, or put them away (`git stash push --include-untracked`), and run it "
                  "again."),
    "E0847": Code("no sources there", "`transpile changeset --into` and `batch --sources` translate what a checkout of "
                  "TileGym, or a folder, has as package `tilegym` (src/tilegym or tilegym), and never what is "
                  "installed instead. The folder can't be read, or holds no such package.", "Name a clone of the "
                  "repository, or a folder that holds the package."),
    "E0848": Code("not in the sources", "The checkout or folder whose sources were asked for has no such module: its "
                  "version lacks the operator, or it is a file that doesn't belong to the package, so that its imports "
                  "would be those of another version. `batch` does the other operators, `changeset` writes nothing.",
                  "Leave the operator out, or name a checkout that has it."),
    "E0849": Code("a changeset that differs", "The translation of a kernel was found to be another program than the "
                  "kernel in the checkout. Nothing was written.", "Leave the operator out, and please report it."),
    "E0870": Code("not an override", "A file in DIR/_overrides isn't an override, or was changed by hand: its name, "
                  "its construct and its writer don't fit together.", "Delete it, and run `transpile fill DIR` again."),
    "E0871": Code("an unknown rule", "`--without` names rows of the tables of rules and forms, to see what becomes of "
                  "a kernel without them.", "docs/operations.md lists the rules; correct the name."),
    "E0872": Code("the source of a folder isn't here", "`transpile fill` translates the sources again, and one of them "
                  "isn't where it was when the folder was written, or was changed since.",
                  "Run it in the same folder as before, name the file with --source, or translate again."),
    "E0873": Code("no client", "`transpile fill --client` names who writes answers, and this one can't be had.",
                  "openai:MODEL and anthropic:MODEL need the extra `agents` (pip install 'cutile-transpiler[agents]') "
                  "and their keys in the environment; command:PROGRAM runs a program; recorded:FILE replays answers. "
                  "Without a client the tasks are written as files."),
    "E0874": Code("the override can't be promoted", "`transpile promote` makes a rule and a case of an accepted "
                  "override, in a checkout of this tool, and never overwrites a file.", "The message says what is in "
                  "the way."),
    "E0900": Code("internal error", "Something happened in transpile that must not happen.",
                  "Please report it with the output of a run with TRANSPILE_DEBUG=1."),
    "E0901": Code("a worker process ended", "A worker crashed or was stopped for taking too long; what it was at "
                  "counts as `error`, the rest went on.", "Please report it."),
    "E0902": Code("nested too deeply", "Expressions or branches are nested more deeply than Python can follow, some "
                  "hundred levels. A chain of `elif` is nested, too: each stands in the `else` of the one before.",
                  "Split expressions into statements, and chains of `elif` into functions."),
    "W0202": Code("a hint is taken from the specialization", "The decorator's hint is an argument of the function that "
                  "makes the kernel.", "State the hint in the specialization."),
    "W0220": Code("a kernel can't be used", "The reference compiler refuses each specialization that the kernel was "
                  "checked for. That is no failure of the translation (the verdict is `rejected`, the exit status 0), "
                  "but nothing of the kernel can be launched for them, with either compiler.", "Correct the kernel, or "
                  "the SPEC.toml: the rank and dtype of each array, and sizes of tiles, which are powers of two."),
    "W0270": Code("no launch was found", "No call of ct.launch in the file launches this kernel, so its "
                  "specializations were made up.", "Give a SPEC.toml with `--spec`; `transpile explain E0271` shows "
                  "one."),
    "W0271": Code("which kernel is launched is unclear", "The kernel of a launch can't be found out without running "
                  "the file.", "Name the kernel in the launch."),
    "W0272": Code("the arguments of a launch are unclear", "They can't be found out without running the file.",
                  "Pass a tuple, or give a SPEC.toml."),
    "W0273": Code("an argument was assumed", "Nothing in the file says what the kernel gets for this parameter; a "
                  "plausible value was taken.", "Give a SPEC.toml with `--spec`; `transpile explain E0271` shows one."),
    "W0274": Code("launches were left out", "The file launches the kernel with more different constants than are "
                  "checked by default; the message says how many were left out.", "Give a SPEC.toml with `--spec` that "
                  "names those that matter; `transpile explain E0271` shows one."),
    "W0275": Code("specializations don't fit", "The sources that `transpile changeset --into` or `batch --sources` "
                  "translates are another version than the manifest was made for: some of its specializations name "
                  "other parameters than the kernel has, or say something of the wrong kind. They were left out; the "
                  "others are checked, and so are the launches that the source itself shows, with what takes other "
                  "paths through the kernel.", "Nothing, or record specializations of that version (`transpile "
                  "record`) and give the manifest to `batch --sources`."),
    "W0276": Code("a kernel is gone", "The manifest names a kernel that the sources of the checkout don't have, "
                  "perhaps because it has another name there. It was left out; the kernels that are there are "
                  "translated, those that no manifest knows for the launches that the source shows.", "Nothing, or "
                  "record specializations of that version (`transpile record`)."),
    "W0277": Code("parameters are gone", "The manifest's specializations say something of parameters that the kernel "
                  "doesn't have in the sources of the checkout. What they say of the others fits, so they are checked "
                  "without those parameters; of several that are the same then, one is.", "Nothing, or record "
                  "specializations of that version (`transpile record`)."),
    "W0610": Code("raised, not translated", "This line has no rule. `transpile fill --raise` filled the kernel from "
                  "the reference's own Tile IR, for the specializations that were checked and no others. It isn't "
                  "counted as translated.", "Add the rule that the message names; then the raised code isn't used."),
    "W0720": Code("a check was not executed", "A specialization doesn't say which sizes, numbers and grids belong "
                  "together, and none were found on which the kernel stays within its arrays. The check's verdict is "
                  "that of the comparison of graphs alone.", "Nothing; a specialization with a `grid` may help."),
    "W0721": Code("an access outside an array", "Executing a side on inputs that are valid for the reference, an "
                  "operation left its array.", "If the kernel is called with such inputs, check the index before."),
    "W0722": Code("a read of memory never written", "Executing a side, an operation read elements that nothing had "
                  "written before, in an array that the reference writes first.",
                  "Write the array before it is read, or pass it initialized."),
    "W0723": Code("a race", "Executing a side, two accesses to one element, at least one of them a write, are ordered "
                  "by nothing: no token within a tile block, no atomics between tile blocks. On both sides it is a "
                  "property of the kernel on the inputs that were made up for it, which may be ones that it is never "
                  "called with.", "Order the accesses, use atomics, or give each tile block elements of its own."),
    "W0724": Code("undefined behaviour", "Executing a side, an operation did what Tile IR leaves undefined: a division "
                  "by zero, a shift by too many bits, a conversion that doesn't fit, a stated fact that doesn't hold.",
                  "If the kernel is called with such inputs, exclude the case before the operation."),
    "W0822": Code("an operator was deleted", "Its folder in DIR isn't there any more. It is no operator of DIR from "
                  "now on: the next `transpile`, `batch` or `build` takes it out of the crate and of manifest.json, "
                  "and `verify` checks the others.", "Translate its source again to have it back."),
    "W0840": Code("an operator isn't in the library", "`transpile build` makes the library of the operators that have "
                  "no Holes; the message names the kernels that have some. Rust refuses a kernel.rs with a Hole as a "
                  "whole, so the other kernels of the same source file aren't in the library either. Launching one of "
                  "them raises a LibraryError with this message. The exit status is 3.", "Fill the Holes (`transpile "
                  "fill DIR`), rewrite the kernel, or translate the other kernels alone with `--kernel`; the host "
                  "module then launches the rest with cuda.tile."),
    "W0813": Code("shards are missing", "The reports that were merged aren't all shards of the batch; the result says "
                  "nothing of the checks that the others do, and its JSON has the shards that it is of. Reports of "
                  "whole runs are joined too, though nothing says that they belong together.",
                  "Give the JSON of every shard."),
    "W0832": Code("a launch was not recorded", "`transpile record` could not write down one of the launches; the "
                  "message says why. The others were recorded.", "State the specialization by hand."),
}  # fmt: skip

CODES: dict[str, Code] = dict(sorted(
    {**{code: Code(row.what, _CONSTRUCT, f"{row.help[:1].upper()}{row.help[1:]}.") for code, row in CONSTRUCTS.items()},
     **_OWN}.items()
))  # fmt: skip

TRANSIENT = frozenset({"E0210", "E0211", "E0213", "E0650", "E0651", "E0652", "E0661", "E0662", "E0900", "E0901"})
"""What may be otherwise next time: time limits, crashes, tools that are missing or fail, our own mistakes."""

INTERNAL = "E0900"
CHECKER_FAILED = frozenset({INTERNAL, "E0901"})
"""What is our own failing, not that of the environment."""
