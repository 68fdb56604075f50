//! The tables of a generated crate: what a kernel takes, and the entries that it was translated to.

use super::call::Call;
use super::dtype::DType;

/// A kernel and its entries. The names are those of the Python parameters, each kind in the kernel's order.
#[derive(Debug)]
pub struct Kernel {
    /// The kernel's name in Python.
    pub name: &'static str,
    /// Array parameters.
    pub arrays: &'static [&'static str],
    /// Parameters that are scalars at run time.
    pub scalars: &'static [&'static str],
    /// Parameters that are constants of the compilation.
    pub constants: &'static [&'static str],
    /// The optimisation level that the decorator asks for, by target (`default` for all others).
    pub opt_levels: &'static [(&'static str, u8)],
    /// The entries, those with more conditions first.
    pub entries: &'static [Entry],
}

/// A Rust function that serves some calls of a kernel.
#[derive(Debug)]
pub struct Entry {
    /// The function's name.
    pub name: &'static str,
    /// The condition under which it is taken, as Python text.
    pub when: &'static str,
    /// The condition.
    pub applies: fn(&Call<'_>) -> bool,
    /// Its generics, in order.
    pub generics: &'static [Generic],
    /// Its parameters, in order.
    pub params: &'static [Param],
}

/// A generic of an entry: its name, and how its value follows from a call's constants and types.
#[derive(Debug)]
pub enum Generic {
    /// An element type, one of those that the entry was compared for.
    Type(&'static str, &'static [DType], fn(&Call<'_>) -> Option<DType>),
    /// An `i32`; -1 stands for an extent that is read at run time.
    Size(&'static str, fn(&Call<'_>) -> Option<i32>),
    /// A `bool`.
    Flag(&'static str, fn(&Call<'_>) -> Option<bool>),
}

impl Generic {
    /// The generic's name.
    pub fn name(&self) -> &'static str {
        match self {
            Generic::Type(name, ..) | Generic::Size(name, _) | Generic::Flag(name, _) => name,
        }
    }
}

/// A parameter of an entry; `index` counts among the kernel's arrays or scalars.
#[derive(Debug)]
pub enum Param {
    /// `&Tensor<E, { [..] }>`: the address, all extents and all strides are passed.
    Array {
        /// The parameter's name in Rust.
        name: &'static str,
        /// Which array.
        index: usize,
        /// The element type in the parameter's type.
        element: Element,
        /// The extents in the parameter's type.
        extents: &'static [Extent],
        /// Whether tiles are loaded and stored through views of it.
        viewed: bool,
        /// Axes whose stride the entry reads: it is passed even where it is 1.
        dynamic_strides: &'static [usize],
    },
    /// A list of arrays as `&Tensor<i64, { [-1, W] }>`: a table on the device with a row of 64-bit words for each
    /// array, its address, its extents and its strides.
    List {
        /// The parameter's name in Rust.
        name: &'static str,
        /// Which array.
        index: usize,
        /// The element type of the arrays.
        element: Element,
        /// The rank of the arrays.
        rank: usize,
    },
    /// A scalar.
    Scalar {
        /// The parameter's name in Rust.
        name: &'static str,
        /// Which scalar.
        index: usize,
        /// Its type.
        dtype: DType,
    },
}

/// An element type in a parameter's type.
#[derive(Debug, Clone, Copy)]
pub enum Element {
    /// This type.
    Fixed(DType),
    /// The generic with this position.
    Generic(usize),
}

/// An extent in a parameter's type.
#[derive(Debug, Clone, Copy)]
pub enum Extent {
    /// Read at run time (-1).
    Dynamic,
    /// This extent.
    Static(i32),
    /// The generic with this position.
    Generic(usize),
}
