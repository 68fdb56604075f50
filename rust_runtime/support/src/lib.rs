//! What stands between a C caller and the kernels of a generated crate.
//!
//! A generated crate has one C symbol per kernel. Behind each is a table ([`Kernel`]) of the kernel's
//! parameters and of its entries, the Rust functions that it was translated to. A call runs through
//! [`dispatch`]: the arguments are checked ([`call`]), an entry is chosen and its generics are computed
//! ([`choose`]), the facts that the compiler may rely on are derived from the arguments as the reference's
//! JIT derives them ([`facts`]), and the compiled function is started on the caller's stream ([`mod@launch`]).
//!
//! # Why the launchers that cutile generates are not used
//!
//! `#[cutile::entry]` generates a launcher for each entry. It derives the compile inputs itself: a divisor up
//! to 16 for *every* integer argument, every extent, every stride and every pointer, whatever power of two it
//! is. There is no way to leave one out, and the reference derives others: none for scalars, 16 or nothing for
//! extents, 16 bytes or nothing for strides. It also indexes the divisors of an array by axis where the
//! compiler looks them up by *dynamic* axis. A launch through it compiles another program than the one
//! that was compared with the reference.
//!
//! `cutile::tile_kernel::compile_from_context` is the function underneath. It is public and takes generics,
//! static strides, facts and options as they are given. [`Program`] calls it, with the facts of [`facts`], and
//! starts the function that it returns with `cuLaunchKernel`. The cache in front of it is ours: one lookup by a
//! short key of integers, no strings.
//!
//! # One source
//!
//! This crate is built and tested in the workspace, and its sources are copied into every generated crate
//! as the module `support`. Paths inside are relative (`super::`) so that both work; tests come last in a
//! file, and are left out of the copies.

pub mod abi;
pub mod call;
pub mod choose;
pub mod dispatch;
pub mod dtype;
mod exchange;
pub mod facts;
pub mod launch;
pub mod lists;
pub mod plan;
pub mod py;
pub mod python;
pub mod signature;
pub mod status;
pub mod table;

pub use abi::{Launch, MAX_RANK, RawValue, TensorDesc};
pub use call::Call;
pub use dispatch::launch;
pub use dtype::DType;
pub use launch::Program;
pub use status::{Failure, Status};
pub use table::{Element, Entry, Extent, Generic, Kernel, Param};

#[cfg(test)]
mod tests;
