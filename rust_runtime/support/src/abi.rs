//! The structures that cross the C boundary. `cutile_kernels_abi_version` changes with them.

use std::ffi::c_char;

/// The version of this interface; the Python side refuses another one.
pub const ABI_VERSION: i32 = 2;

/// The highest rank of an array.
pub const MAX_RANK: usize = 8;

/// An array in device memory, or a list of such arrays. The callee borrows it: the caller keeps it alive until the stream has passed the launch.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct TensorDesc {
    /// Address of the first element; of a list, the address in host memory of `shape[0]` descriptions.
    pub data: u64,
    /// Extents, in elements; the first `ndim` count.
    pub shape: [i64; MAX_RANK],
    /// Strides, in elements.
    pub strides: [i64; MAX_RANK],
    /// Rank.
    pub ndim: i32,
    /// Code of the element type, see [`super::DType`].
    pub dtype: i32,
    /// Ordinal of the device that the memory is on, or -1 when the caller can't say.
    pub device: i32,
    /// [`form::ARRAY`] or [`form::LIST`]; of a list, the other fields are not read.
    pub form: i32,
}

/// What a [`TensorDesc`] describes.
pub mod form {
    /// An array.
    pub const ARRAY: i32 = 0;
    /// A list of arrays that agree in rank and element type.
    pub const LIST: i32 = 1;
}

/// Tags of [`RawValue`].
pub mod kind {
    /// Python's None.
    pub const NONE: i32 = 0;
    /// A bool; the payload is 0 or 1.
    pub const BOOL: i32 = 1;
    /// An integer; the payload is an `int64_t`.
    pub const INT: i32 = 2;
    /// A float; the payload is a `double`.
    pub const FLOAT: i32 = 3;
    /// A text; the payload is a pointer to UTF-8 with a terminating zero.
    pub const TEXT: i32 = 4;
}

/// The payload of a [`RawValue`].
#[repr(C)]
#[derive(Clone, Copy)]
pub union Payload {
    /// For [`kind::BOOL`] and [`kind::INT`].
    pub int: i64,
    /// For [`kind::FLOAT`].
    pub float: f64,
    /// For [`kind::TEXT`].
    pub text: *const c_char,
}

/// A scalar or a compile-time constant, as Python passed it.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct RawValue {
    /// One of [`kind`].
    pub kind: i32,
    /// Zero.
    pub reserved: i32,
    /// What `kind` says.
    pub payload: Payload,
}

/// Flags of [`Launch`].
pub mod flag {
    /// Check the arguments and choose the entry, and leave what would be launched in
    /// `cutile_kernels_last_plan`. Needs no device.
    pub const DRY_RUN: u32 = 1;
    /// Let the next kernel of the stream start early (programmatic dependent launch).
    pub const DEPENDENT_LAUNCH: u32 = 2;
    /// All that there are.
    pub const ALL: u32 = DRY_RUN | DEPENDENT_LAUNCH;
}

/// Where and how to launch. Zero in a hint means: as the kernel's decorator says.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Launch {
    /// Size of this structure, in bytes.
    pub size: u32,
    /// See [`flag`].
    pub flags: u32,
    /// Number of tile blocks along each axis.
    pub grid: [u32; 3],
    /// Ordinal of the device.
    pub device: i32,
    /// Expected number of resident blocks on a multiprocessor, 1 to 32.
    pub occupancy: i32,
    /// Number of CTAs of a block, a power of two up to 16.
    pub num_ctas: i32,
    /// Number of worker warps, a power of two up to 32.
    pub num_worker_warps: i32,
    /// Optimisation level plus one: 1 to 4.
    pub opt_level_plus_one: i32,
    /// A `CUstream` of the device's primary context; zero is the default stream.
    pub stream: u64,
}

const _: () = assert!(size_of::<TensorDesc>() == 152 && size_of::<RawValue>() == 16 && size_of::<Launch>() == 48);
