//! What is asked of the compiler: one entry, one specialization, one target.

use cutile_compiler::hints::{CompileOptions, DebugInfoLevel};

/// What is known of one tensor parameter, each list with one item per axis.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TensorFacts {
    /// Known divisors of the extents, in elements.
    pub shape_div: Vec<i32>,
    /// Known divisors of the strides, in elements.
    pub stride_div: Vec<i32>,
    /// Known divisor of the base address, in bytes.
    pub base_ptr_div: i32,
}

/// In which form the result is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Tile IR bytecode.
    Bytecode,
    /// The compiler's own text of the Tile IR, which does not need to pass the verifiers.
    Text,
}

/// One specialization of one entry.
#[derive(Debug, Clone)]
pub struct Request {
    /// Name of the `#[cutile::entry]` function.
    pub entry: String,
    /// Values of the generic parameters, in the order of declaration.
    pub generics: Vec<String>,
    /// Strides per tensor parameter: -1 for one that is read at run time.
    pub strides: Vec<(String, Vec<i32>)>,
    /// Facts per tensor parameter.
    pub facts: Vec<(String, TensorFacts)>,
    /// Known divisors of integer and pointer parameters (bytes for pointers).
    pub scalar_divisors: Vec<(String, i32)>,
    /// Architecture, `sm_90` for instance.
    pub target: String,
    /// Hints and code generation options.
    pub options: CompileOptions,
    /// The grid, when it is baked in.
    pub grid: Option<(u32, u32, u32)>,
    /// Form of the result.
    pub form: Form,
}

/// No hints, and no debug information whatever profile this crate is built with.
pub fn plain_options() -> CompileOptions {
    CompileOptions::new().debug_info(DebugInfoLevel::None)
}
