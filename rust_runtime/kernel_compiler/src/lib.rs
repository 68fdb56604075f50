//! Compiles the text of a cuTile Rust module to Tile IR inside this process.
//!
//! No rustc and no GPU take part: `cutile-compiler` reads the syntax tree of the module and emits
//! Tile IR bytecode. [`Compiler`] owns a thread with a large stack, because the compiler recurses
//! deeply, and because the spans of a syntax tree are only valid on the thread that parsed it.
//! Whatever goes wrong, panics of the compiler included, comes back as one [`Failure`] that points
//! into the text.

mod facts;
mod failure;
mod fragment;
mod locate;
mod panics;
mod program;
mod request;
mod surface;
mod worker;

pub use cutile_compiler::hints::CompileOptions;
pub use failure::Failure;
pub use fragment::parse_fragment;
pub use request::{Form, Request, TensorFacts, plain_options};
pub use surface::{Callable, callables};
pub use worker::Compiler;

include!(concat!(env!("OUT_DIR"), "/versions.rs"));

/// The text of a module and how to find the module in it.
#[derive(Debug, Clone)]
pub struct Source {
    /// Rust source text that contains `mod <module>`.
    pub text: String,
    /// Name of the module that holds the kernels.
    pub module: String,
    /// File name that diagnostics and Tile IR locations carry.
    pub file: String,
}
