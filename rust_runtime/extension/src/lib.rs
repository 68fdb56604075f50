//! The Python module `transpiler._rust`; the stub `transpiler/_rust.pyi` documents it for Python.
// The macros of pyo3 expand to unsafe code.
#![allow(unsafe_code)]

use kernel_compiler::{Compiler, Failure, Form, Request, Source, TensorFacts};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDict, PyType};

/// The compiler spends most of its time in the allocator: this one makes a check a third faster.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Runs once, in a namespace that carries this module's name: the limited API of Python 3.11 has no
/// way to derive a native class from an exception.
const COMPILE_ERROR: &std::ffi::CStr = c"
class CompileError(Exception):
    'Why a text could not be compiled; line and column count from 1, 0 means unknown.'

    def __init__(self, message, line=0, column=0):
        super().__init__(message, line, column)
        self.message = message
        self.line = line
        self.column = column

    def __str__(self):
        return self.message
";

fn compile_error(py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let class = CLASS.get_or_try_init(py, || {
        let namespace = PyDict::new(py);
        namespace.set_item("__name__", "transpiler._rust")?;
        py.run(COMPILE_ERROR, Some(&namespace), None)?;
        let class = namespace.as_any().get_item("CompileError")?;
        PyResult::Ok(class.cast_into::<PyType>()?.unbind())
    })?;
    Ok(class.bind(py))
}

fn raise(py: Python<'_>, failure: Failure) -> PyErr {
    let arguments = (failure.message, failure.line, failure.column);
    match compile_error(py).and_then(|class| class.call1(arguments)) {
        Ok(error) => PyErr::from_value(error),
        Err(error) => error,
    }
}

/// A module of kernels, parsed once.
#[pyclass(frozen, module = "transpiler._rust")]
struct Module {
    compiler: Compiler,
}

type Strides = Vec<(String, Vec<i32>)>;
type Specs = Vec<(String, Vec<i32>, Vec<i32>, i32)>;
type Grid = (u32, u32, u32);

#[pymethods]
impl Module {
    #[new]
    #[pyo3(signature = (source, name, file = "kernel.rs".to_owned()))]
    fn new(py: Python<'_>, source: String, name: String, file: String) -> PyResult<Self> {
        let source = Source { text: source, module: name, file };
        let compiler = py.detach(|| Compiler::new(source)).map_err(|failure| raise(py, failure))?;
        Ok(Self { compiler })
    }

    #[pyo3(signature = (entry, *, generics, strides, specs, scalar_hints, target, occupancy = None,
        num_ctas = None, num_worker_warps = None, opt_level = None, grid = None))]
    #[allow(clippy::too_many_arguments)]
    fn compile<'py>(
        &self,
        py: Python<'py>,
        entry: String,
        generics: Vec<String>,
        strides: Strides,
        specs: Specs,
        scalar_hints: Vec<(String, i32)>,
        target: String,
        occupancy: Option<i32>,
        num_ctas: Option<i32>,
        num_worker_warps: Option<i32>,
        opt_level: Option<u8>,
        grid: Option<Grid>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let options = options(occupancy, num_ctas, num_worker_warps, opt_level);
        let facts = facts(specs);
        let request = Request {
            entry,
            generics,
            strides,
            facts,
            scalar_divisors: scalar_hints,
            target,
            options,
            grid,
            form: Form::Bytecode,
        };
        Ok(PyBytes::new(py, &self.run(py, request)?))
    }

    #[pyo3(signature = (entry, *, generics, strides, specs, scalar_hints, target, occupancy = None,
        num_ctas = None, num_worker_warps = None, opt_level = None, grid = None))]
    #[allow(clippy::too_many_arguments)]
    fn ir_text(
        &self,
        py: Python<'_>,
        entry: String,
        generics: Vec<String>,
        strides: Strides,
        specs: Specs,
        scalar_hints: Vec<(String, i32)>,
        target: String,
        occupancy: Option<i32>,
        num_ctas: Option<i32>,
        num_worker_warps: Option<i32>,
        opt_level: Option<u8>,
        grid: Option<Grid>,
    ) -> PyResult<String> {
        let options = options(occupancy, num_ctas, num_worker_warps, opt_level);
        let facts = facts(specs);
        let request = Request {
            entry,
            generics,
            strides,
            facts,
            scalar_divisors: scalar_hints,
            target,
            options,
            grid,
            form: Form::Text,
        };
        Ok(String::from_utf8_lossy(&self.run(py, request)?).into_owned())
    }
}

impl Module {
    fn run(&self, py: Python<'_>, request: Request) -> PyResult<Vec<u8>> {
        py.detach(|| self.compiler.compile(request)).map_err(|failure| raise(py, failure))
    }
}

fn options(
    occupancy: Option<i32>,
    num_ctas: Option<i32>,
    num_worker_warps: Option<i32>,
    opt_level: Option<u8>,
) -> kernel_compiler::CompileOptions {
    let mut options = kernel_compiler::plain_options();
    options.occupancy = occupancy;
    options.num_cta_in_cga = num_ctas;
    options.num_worker_warps_per_cta = num_worker_warps;
    match opt_level {
        Some(level) => options.opt_level(level),
        None => options,
    }
}

fn facts(specs: Specs) -> Vec<(String, TensorFacts)> {
    let facts = specs.into_iter().map(|(name, shape_div, stride_div, base_ptr_div)| {
        let known = TensorFacts { shape_div, stride_div, base_ptr_div };
        (name, known)
    });
    facts.collect()
}

/// Exact versions of the compiler crates that are linked in, and of rustc.
#[pyfunction]
fn versions(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let table = PyDict::new(py);
    for (name, version) in kernel_compiler::VERSIONS {
        table.set_item(name, version)?;
    }
    Ok(table)
}

/// Parses a piece of Rust of the kernel language; see `transpiler/_rust.pyi`.
#[pyfunction]
#[pyo3(signature = (text, declared = Vec::new()))]
fn parse_fragment(py: Python<'_>, text: String, declared: Vec<String>) -> PyResult<String> {
    py.detach(|| kernel_compiler::parse_fragment(&text, &declared)).map_err(|failure| raise(py, failure))
}

type CallableRow = (String, String, String, String, Vec<String>, String, usize);

/// The functions that kernels can call: name, signature, doc, operation, choices, file, line.
#[pyfunction]
fn callables(py: Python<'_>) -> Vec<CallableRow> {
    let found = py.detach(kernel_compiler::callables);
    let rows = found.iter().cloned().map(|one| {
        let (file, line) = one.place;
        (one.name, one.signature, one.doc, one.operation, one.choices, file, line)
    });
    rows.collect()
}

#[pymodule]
mod _rust {
    use super::*;

    #[pymodule_export]
    use super::{Module, callables, parse_fragment, versions};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("CompileError", compile_error(module.py())?)?;
        module.add("version", env!("CARGO_PKG_VERSION"))
    }
}
