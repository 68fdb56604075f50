//! Lists of arrays: one description that stands for all of a list's arrays, and the table that a kernel reads.
//!
//! The reference compiles a list for what is true of each of its arrays. So does [`representative`]: an array of
//! the same rank and type for which exactly the facts hold that hold for all. Whatever looks at an array's facts
//! (conditions, generics, the compiler) looks at it and needs to know nothing of lists.

use super::abi::{TensorDesc, form};
use super::dtype::DType;
use super::facts::{base_divisor, shape_divisor, stride_divisor};
use super::status::{Failure, Status};

/// The arrays of a list.
///
/// # Safety
///
/// `list.data` is null or points to `list.shape[0]` descriptions, which stay as they are for `'a`.
pub(crate) unsafe fn items<'a>(name: &str, list: &TensorDesc) -> Result<&'a [TensorDesc], Failure> {
    let fail = |status, what: &str| Err(Failure::new(status, format!("list `{name}` {what}")));
    let Ok(length) = usize::try_from(list.shape[0]) else { return fail(Status::Shape, "has a negative length") };
    if length > i32::MAX as usize {
        return fail(Status::IndexOverflow, "has more arrays than 32 bits count");
    }
    if length == 0 {
        return fail(Status::Shape, "is empty");
    }
    if list.data == 0 || !list.data.is_multiple_of(align_of::<TensorDesc>() as u64) {
        return fail(Status::NullPointer, "has no descriptions of its arrays");
    }
    // SAFETY: the caller's promise; the pointer is aligned.
    Ok(unsafe { std::slice::from_raw_parts(list.data as usize as *const TensorDesc, length) })
}

/// Whether the arrays of a list are alike, as a kernel that loops over them needs.
pub(crate) fn check_alike(name: &str, items: &[TensorDesc]) -> Result<(), Failure> {
    for (position, item) in items.iter().enumerate() {
        if item.form != form::ARRAY {
            return Err(Failure::new(Status::Value, format!("item {position} of list `{name}` is not an array")));
        }
        if item.ndim != items[0].ndim {
            let what = format!("the arrays of list `{name}` have ranks {} and {}", items[0].ndim, item.ndim);
            return Err(Failure::new(Status::Rank, what));
        }
        if item.dtype != items[0].dtype {
            return Err(Failure::new(Status::Dtype, format!("the arrays of list `{name}` differ in element type")));
        }
    }
    Ok(())
}

/// An array with the facts that all arrays of a (checked) list have.
pub(crate) fn representative(items: &[TensorDesc]) -> TensorDesc {
    let mut one = items[0];
    let dtype = DType::from_code(one.dtype).unwrap_or(DType::I8);
    let all = |fact: &dyn Fn(&TensorDesc) -> bool| items.iter().all(fact);
    // Numbers that have a fact, or have none: 3 is neither 1 nor a multiple of 2.
    for axis in 0..one.ndim as usize {
        one.shape[axis] = match () {
            () if all(&|item| item.shape[axis] == 1) => 1,
            () if all(&|item| shape_divisor(item.shape[axis]) > 1) => 16,
            () => 3,
        };
        one.strides[axis] = match () {
            () if all(&|item| item.strides[axis] == 1) => 1,
            () if all(&|item| stride_divisor(item.strides[axis], dtype) > 1) => 16,
            () => 3,
        };
    }
    one.data = if all(&|item| base_divisor(item.data) > 1) { 16 } else { 8 };
    one
}

/// The number of words of the table of a (checked) list.
pub fn words(items: &[TensorDesc]) -> usize {
    items.first().map_or(0, |item| items.len() * (1 + 2 * item.ndim as usize))
}

/// Writes the table that a kernel reads: address, extents and strides of each array. What is behind it becomes 0.
pub fn write_table(items: &[TensorDesc], table: &mut [u64]) {
    let row = |item: &TensorDesc| {
        let (rank, item) = (item.ndim as usize, *item);
        let sizes = item.shape.into_iter().take(rank).chain(item.strides.into_iter().take(rank));
        std::iter::once(item.data).chain(sizes.map(|size| size as u64))
    };
    let words = items.iter().flat_map(row).chain(std::iter::repeat(0));
    table.iter_mut().zip(words).for_each(|(place, word)| *place = word);
}

#[cfg(test)]
mod tests {
    use super::super::abi::MAX_RANK;
    use super::*;

    fn matrix(data: u64, shape: [i64; 2], strides: [i64; 2]) -> TensorDesc {
        let fill = |sizes: [i64; 2]| std::array::from_fn::<i64, MAX_RANK, _>(|axis| *sizes.get(axis).unwrap_or(&0));
        let (shape, strides) = (fill(shape), fill(strides));
        TensorDesc { data, shape, strides, ndim: 2, dtype: DType::F16 as i32, device: 0, form: form::ARRAY }
    }

    #[test]
    fn a_representative_has_the_common_facts() {
        let items = [matrix(0x100, [16, 1], [32, 1]), matrix(0x208, [48, 1], [8, 1]), matrix(0x300, [32, 1], [40, 2])];
        let one = representative(&items[..1]);
        assert_eq!((one.data, one.shape[0], one.shape[1], one.strides[0], one.strides[1]), (16, 16, 1, 16, 1));
        let all = representative(&items);
        assert_eq!((all.data, all.shape[0], all.shape[1], all.strides[0], all.strides[1]), (8, 16, 1, 16, 3));
        let mut table = [7; 12];
        write_table(&items[1..], &mut table);
        assert_eq!((words(&items[1..]), words(&[])), (10, 0));
        assert_eq!(table, [0x208, 48, 1, 8, 1, 0x300, 32, 1, 40, 2, 0, 0]);
    }
}
