//! A call's arguments: read from the caller's memory, checked, and looked at by conditions and generics.

use std::borrow::Cow;
use std::ffi::CStr;

use super::abi::{Launch, MAX_RANK, RawValue, TensorDesc, flag, form, kind};
use super::dtype::DType;
use super::facts::{base_divisor, overlaps, shape_divisor, stride_divisor};
use super::lists;
use super::py::Value;
use super::status::{Failure, Status};
use super::table::Kernel;

/// The arguments of one call.
#[derive(Clone)]
pub struct Call<'a> {
    /// The kernel that is called.
    pub kernel: &'static Kernel,
    /// Where and how to launch.
    pub launch: &'a Launch,
    arrays: Cow<'a, [TensorDesc]>,
    lists: Vec<(usize, &'a [TensorDesc])>,
    scalars: &'a [RawValue],
    constants: &'a [RawValue],
}

/// A pointer and a length, as C passes an array.
pub(crate) type Raw<T> = (*const T, usize);

impl<'a> Call<'a> {
    /// Reads and checks the arguments.
    ///
    /// # Safety
    ///
    /// Each pointer is null, or points to as many items as the length beside it says (`launch` to one), which
    /// stay as they are until the call returns; so do the descriptions that a list points to. Texts end with a zero.
    pub(crate) unsafe fn read(
        kernel: &'static Kernel,
        arrays: Raw<TensorDesc>,
        scalars: Raw<RawValue>,
        constants: Raw<RawValue>,
        launch: *const Launch,
    ) -> Result<Self, Failure> {
        if launch.is_null() {
            return Err(Failure::new(Status::NullPointer, "`launch` is null"));
        }
        // SAFETY: the size comes first in every version of the structure.
        if unsafe { (&raw const (*launch).size).read() } as usize != size_of::<Launch>() {
            return Err(Failure::new(Status::AbiMismatch, "`launch` has another size: rebuild the library"));
        }
        // SAFETY: as above, for this version.
        let launch = unsafe { &*launch };
        // SAFETY: the caller's promise.
        let mut call = unsafe {
            Self {
                kernel,
                launch,
                arrays: Cow::Borrowed(slice("arrays", arrays, kernel.arrays)?),
                lists: Vec::new(),
                scalars: slice("scalars", scalars, kernel.scalars)?,
                constants: slice("constants", constants, kernel.constants)?,
            }
        };
        // SAFETY: the caller's promise.
        unsafe { call.read_lists()? };
        call.check()?;
        Ok(call)
    }

    /// Puts a representative of its arrays in the place of each list.
    ///
    /// # Safety
    ///
    /// As for [`Call::read`].
    unsafe fn read_lists(&mut self) -> Result<(), Failure> {
        if self.arrays.iter().all(|array| array.form == form::ARRAY) {
            return Ok(());
        }
        for (index, name) in self.kernel.arrays.iter().enumerate() {
            let list = self.arrays[index];
            match list.form {
                form::ARRAY => continue,
                form::LIST => {}
                other => return Err(Failure::new(Status::Value, format!("array `{name}` has unknown form {other}"))),
            }
            // SAFETY: the caller's promise.
            let items = unsafe { lists::items(name, &list)? };
            lists::check_alike(name, items)?;
            for item in items {
                check_array(name, item, self.launch.device)?;
            }
            self.lists.push((index, items));
            self.arrays.to_mut()[index] = lists::representative(items);
        }
        Ok(())
    }

    fn check(&self) -> Result<(), Failure> {
        check_launch(self.launch)?;
        for (name, array) in self.kernel.arrays.iter().zip(self.arrays.iter()) {
            check_array(name, array, self.launch.device)?;
        }
        for (name, value) in self.kernel.scalars.iter().zip(self.scalars) {
            check_value(name, value)?;
        }
        for (name, value) in self.kernel.constants.iter().zip(self.constants) {
            check_value(name, value)?;
        }
        Ok(())
    }

    /// An array's description; of a list, that of an array with the facts which all its arrays have.
    pub fn array(&self, index: usize) -> &TensorDesc {
        &self.arrays[index]
    }

    /// The arrays of a list, `None` for an array.
    pub fn list(&self, index: usize) -> Option<&'a [TensorDesc]> {
        self.lists.iter().find(|(position, _)| *position == index).map(|(_, items)| *items)
    }

    /// An array's extents, which fit into 32 bits.
    pub fn shape(&self, index: usize) -> &[i64] {
        &self.arrays[index].shape[..self.rank_of(index)]
    }

    /// An array's strides, which fit into 32 bits.
    pub fn strides(&self, index: usize) -> &[i64] {
        &self.arrays[index].strides[..self.rank_of(index)]
    }

    /// An array's rank.
    pub fn rank_of(&self, index: usize) -> usize {
        self.arrays[index].ndim as usize
    }

    /// An array's element type.
    pub fn element(&self, index: usize) -> Option<DType> {
        DType::from_code(self.arrays[index].dtype)
    }

    // What conditions are made of

    /// A constant.
    pub fn constant(&self, index: usize) -> Value<'a> {
        value(&self.constants[index])
    }

    /// A scalar; conditions never read it.
    pub(crate) fn scalar(&self, index: usize) -> Value<'a> {
        value(&self.scalars[index])
    }

    /// The name of an array's element type in cuda.tile.
    pub fn dtype(&self, index: usize) -> Value<'a> {
        self.element(index).map_or(Value::Undefined, |dtype| Value::Text(dtype.python()))
    }

    /// The type that the reference gives a scalar, by its value.
    pub fn scalar_type(&self, index: usize) -> Option<DType> {
        match self.scalar(index) {
            Value::Bool(_) => Some(DType::Bool),
            Value::Int(value) => Some(if i32::try_from(value).is_ok() { DType::I32 } else { DType::I64 }),
            Value::Float(_) => Some(DType::F32),
            Value::None | Value::Text(_) | Value::Undefined => None,
        }
    }

    /// The name of a scalar's type in cuda.tile.
    pub fn scalar_dtype(&self, index: usize) -> Value<'a> {
        self.scalar_type(index).map_or(Value::Undefined, |dtype| Value::Text(dtype.python()))
    }

    /// An array's rank.
    pub fn rank(&self, index: usize) -> Value<'a> {
        Value::Int(i128::from(self.arrays[index].ndim))
    }

    /// An extent that the reference's JIT compiles in: 1, or None when it is read at run time.
    pub fn dim(&self, index: usize, axis: usize) -> Value<'a> {
        compiled_in(self.shape(index).get(axis))
    }

    /// A stride that the reference's JIT compiles in: 1, or None when it is read at run time.
    pub fn stride(&self, index: usize, axis: usize) -> Value<'a> {
        compiled_in(self.strides(index).get(axis))
    }

    /// The known divisor of an extent.
    pub fn dim_divisor(&self, index: usize, axis: usize) -> Value<'a> {
        let extent = self.shape(index).get(axis);
        extent.map_or(Value::Undefined, |&extent| Value::Int(i128::from(shape_divisor(extent))))
    }

    /// The known divisor of a stride, in elements.
    pub fn stride_divisor(&self, index: usize, axis: usize) -> Value<'a> {
        match (self.strides(index).get(axis), self.element(index)) {
            (Some(&stride), Some(dtype)) => Value::Int(i128::from(stride_divisor(stride, dtype))),
            _ => Value::Undefined,
        }
    }

    /// The known divisor of the address, in bytes.
    pub fn address_divisor(&self, index: usize) -> Value<'a> {
        Value::Int(i128::from(base_divisor(self.arrays[index].data)))
    }

    /// Whether elements of an array, or of an array of a list, may share memory.
    pub fn overlaps(&self, index: usize) -> bool {
        self.list(index).map_or_else(|| overlaps(self.array(index)), |items| items.iter().any(overlaps))
    }

    /// Bytes of an element.
    pub fn itemsize(&self, index: usize) -> Value<'a> {
        self.element(index).map_or(Value::Undefined, |dtype| Value::Int(i128::from(dtype.bytes())))
    }
}

fn compiled_in<'a>(size: Option<&i64>) -> Value<'a> {
    match size {
        Some(1) => Value::Int(1),
        Some(_) => Value::None,
        None => Value::Undefined,
    }
}

/// # Safety
///
/// As for [`Call::read`].
unsafe fn slice<'a, T>(what: &str, raw: Raw<T>, names: &[&str]) -> Result<&'a [T], Failure> {
    let (pointer, length) = raw;
    if length != names.len() {
        let wanted = names.len();
        return Err(Failure::new(
            Status::ArgumentCount,
            format!("{length} {what} were given, the kernel has {wanted}"),
        ));
    }
    if length == 0 {
        return Ok(&[]);
    }
    if pointer.is_null() {
        return Err(Failure::new(Status::NullPointer, format!("`{what}` is null")));
    }
    // SAFETY: the caller's promise; the length is that of the kernel's table.
    Ok(unsafe { std::slice::from_raw_parts(pointer, length) })
}

fn check_launch(launch: &Launch) -> Result<(), Failure> {
    if launch.device < 0 {
        return Err(Failure::new(Status::Device, format!("there is no device {}", launch.device)));
    }
    let [x, y, z] = launch.grid;
    if [x, y, z].contains(&0) || x > i32::MAX as u32 || y > 65535 || z > 65535 {
        return Err(Failure::new(Status::Grid, format!("a grid of {x} x {y} x {z} blocks can't be launched")));
    }
    let hint = |name: &str, value: i32, valid: bool| match valid || value == 0 {
        true => Ok(()),
        false => Err(Failure::new(Status::Hint, format!("{value} is no value for {name}"))),
    };
    let power = |value: i32, limit: i32| (1..=limit).contains(&value) && value.count_ones() == 1;
    hint("flags", launch.flags as i32, launch.flags & !flag::ALL == 0)?;
    hint("occupancy", launch.occupancy, (1..=32).contains(&launch.occupancy))?;
    hint("num_ctas", launch.num_ctas, power(launch.num_ctas, 16))?;
    hint("num_worker_warps", launch.num_worker_warps, power(launch.num_worker_warps, 32))?;
    hint("opt_level_plus_one", launch.opt_level_plus_one, (1..=4).contains(&launch.opt_level_plus_one))
}

fn check_array(name: &str, array: &TensorDesc, device: i32) -> Result<(), Failure> {
    let fail = |status, what: String| Err(Failure::new(status, format!("array `{name}` {what}")));
    let Some(rank) = usize::try_from(array.ndim).ok().filter(|rank| *rank <= MAX_RANK) else {
        return fail(Status::Rank, format!("has rank {}", array.ndim));
    };
    if DType::from_code(array.dtype).is_none() {
        return fail(Status::Dtype, format!("has an unknown element type ({})", array.dtype));
    }
    if array.device != device && array.device != -1 {
        return fail(Status::Device, format!("is on device {}, the launch is on device {device}", array.device));
    }
    for (axis, (&extent, &stride)) in array.shape.iter().zip(&array.strides).take(rank).enumerate() {
        if extent < 0 {
            return fail(Status::Shape, format!("has extent {extent} along axis {axis}"));
        }
        if stride < 0 {
            return fail(Status::Stride, format!("has stride {stride} along axis {axis}"));
        }
        if extent.max(stride) > i64::from(i32::MAX) {
            let what = format!("has extent {extent} and stride {stride} along axis {axis}: more than 32 bits hold");
            return fail(Status::IndexOverflow, what);
        }
    }
    if array.data == 0 && !array.shape[..rank].contains(&0) {
        return fail(Status::NullPointer, "is at address null".to_owned());
    }
    Ok(())
}

fn check_value(name: &str, raw: &RawValue) -> Result<(), Failure> {
    match value(raw) {
        Value::Undefined => Err(Failure::new(Status::Value, format!("the value of `{name}` can't be read"))),
        _ => Ok(()),
    }
}

fn value<'a>(raw: &RawValue) -> Value<'a> {
    // SAFETY: the tag says which field is set. Each bit pattern is a value of the numbers; a text is
    // the caller's promise ([`Call::read`]), unless it is null.
    unsafe {
        match raw.kind {
            kind::NONE => Value::None,
            kind::BOOL => match raw.payload.int {
                0 => Value::Bool(false),
                1 => Value::Bool(true),
                _ => Value::Undefined,
            },
            kind::INT => Value::Int(i128::from(raw.payload.int)),
            kind::FLOAT => Value::Float(raw.payload.float),
            kind::TEXT if !raw.payload.text.is_null() => {
                CStr::from_ptr(raw.payload.text).to_str().map_or(Value::Undefined, Value::Text)
            }
            _ => Value::Undefined,
        }
    }
}
