//! What the compiler may rely on, derived from a call as the reference's JIT does.
//!
//! Found in the recorded launches, without an exception: extents are known to be divisible by 16 or not at
//! all, strides by 16 bytes or not at all, and addresses by 16 bytes or not at all. Strides of 1 are compiled
//! in, extents of 1 too where the entry's type has a place for them. A stride that an entry's text reads at run
//! time is passed, whatever it is. Scalars have no facts. The stride of an axis with one element addresses nothing;
//! the reference's compiler calls it a multiple of 16 bytes in views.

use super::abi::{MAX_RANK, TensorDesc};
use super::call::Call;
use super::choose::{Argument, static_extent};
use super::dtype::DType;
use super::table::Param;

/// What is known of one array. The lists have one item per axis; -1 is a stride that is read at run time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArrayFacts {
    /// Strides that are compiled in.
    pub strides: Vec<i32>,
    /// Divisors of the extents.
    pub shape_div: Vec<i32>,
    /// Divisors of the strides.
    pub stride_div: Vec<i32>,
    /// Divisor of the address, in bytes.
    pub base_div: i32,
    /// Whether the entry's type fixes the extent.
    pub static_shape: Vec<bool>,
}

/// The known divisor of an extent.
pub fn shape_divisor(extent: i64) -> i32 {
    if extent % 16 == 0 { 16 } else { 1 }
}

/// The known divisor of a stride, in elements; a stride of 1 is compiled in and has none.
pub fn stride_divisor(stride: i64, dtype: DType) -> i32 {
    let whole = (16 / dtype.bytes()).max(1);
    if stride != 1 && stride % whole == 0 { whole as i32 } else { 1 }
}

/// The divisor of a stride that the compiler is given.
fn stated_stride_divisor(extent: i64, stride: i64, dtype: DType, viewed: bool) -> i32 {
    let known = stride_divisor(stride, dtype);
    if viewed && extent == 1 { known.max((128 / dtype.bits()) as i32) } else { known }
}

/// The known divisor of an address, in bytes.
pub fn base_divisor(data: u64) -> i32 {
    if data.is_multiple_of(16) { 16 } else { 1 }
}

/// Whether elements of an array may share memory, as the reference's launcher says it: an axis steps over nothing, or
/// over less than the axis with the next smaller stride covers (and its gap). Axes with one element count as well.
pub fn overlaps(array: &TensorDesc) -> bool {
    let rank = array.ndim as usize;
    let mut axes = [(0, 0); MAX_RANK];
    for (axis, (&stride, &extent)) in axes.iter_mut().zip(array.strides.iter().zip(&array.shape)).take(rank) {
        *axis = (stride, extent);
    }
    axes[..rank].sort_unstable();
    let mut covered = 1;
    axes[..rank].iter().any(|&(stride, extent)| {
        let over = stride <= 0 || stride < covered;
        covered = stride.saturating_mul(extent);
        over
    })
}

/// The name of an array parameter, and the facts about the array of a call; None for other parameters.
pub fn array_facts(call: &Call<'_>, param: &Param, generics: &[Argument]) -> Option<(&'static str, ArrayFacts)> {
    let &Param::Array { name, index, extents, viewed, dynamic_strides, .. } = param else { return None };
    let compiled_in = |(axis, &stride): (usize, &i64)| stride == 1 && !dynamic_strides.contains(&axis);
    let dtype = call.element(index).unwrap_or(DType::I8);
    let (shape, strides) = (call.shape(index), call.strides(index));
    let axes = shape.iter().zip(strides);
    let stride_div = axes.map(|(&extent, &stride)| stated_stride_divisor(extent, stride, dtype, viewed));
    let facts = ArrayFacts {
        strides: strides.iter().enumerate().map(|at| if compiled_in(at) { 1 } else { -1 }).collect(),
        shape_div: shape.iter().map(|&extent| shape_divisor(extent)).collect(),
        stride_div: stride_div.collect(),
        base_div: base_divisor(call.array(index).data),
        static_shape: extents.iter().map(|&extent| static_extent(extent, generics).is_some()).collect(),
    };
    Some((name, facts))
}

/// The same facts as a few bits, so that a launch finds its function quickly.
pub fn array_bits(call: &Call<'_>, index: usize) -> u64 {
    let dtype = call.element(index).unwrap_or(DType::I8);
    let mut bits = u64::from(base_divisor(call.array(index).data) > 1);
    for (&extent, &stride) in call.shape(index).iter().zip(call.strides(index)) {
        let axis = [extent == 1, shape_divisor(extent) > 1, stride == 1, stride_divisor(stride, dtype) > 1];
        bits = axis.iter().fold(bits, |bits, &fact| bits << 1 | u64::from(fact));
    }
    bits
}

#[cfg(test)]
mod tests {
    use super::super::abi::form;
    use super::*;

    #[test]
    fn overlaps_as_the_launcher_of_the_reference_says() {
        let of = |shape: &[i64], strides: &[i64]| {
            let fill = |sizes: &[i64]| std::array::from_fn(|axis| sizes.get(axis).copied().unwrap_or(0));
            let (shape_, strides_): ([i64; MAX_RANK], [i64; MAX_RANK]) = (fill(shape), fill(strides));
            overlaps(&TensorDesc {
                data: 16,
                shape: shape_,
                strides: strides_,
                ndim: shape.len() as i32,
                dtype: DType::F32 as i32,
                device: 0,
                form: form::ARRAY,
            })
        };
        let apart: [(&[i64], &[i64]); 7] = [
            (&[], &[]),
            (&[4, 16], &[16, 1]),
            (&[4, 1], &[1, 1]),
            (&[1, 4], &[1, 1]),
            (&[0, 4], &[1, 1]),
            (&[3, 2], &[2, 1]),
            (&[5], &[7]),
        ];
        assert!(apart.iter().all(|(shape, strides)| !of(shape, strides)));
        let over: [(&[i64], &[i64]); 8] = [
            (&[4, 16], &[8, 1]),
            (&[4, 16], &[0, 1]),
            (&[1], &[0]),
            (&[0], &[0]),
            (&[4, 1], &[1, 0]),
            (&[2, 2], &[3, 2]),
            (&[4, 16, 0, 2], &[32, 1, 16, 24]),
            (&[3, 3], &[3, 8]),
        ];
        assert!(over.iter().all(|(shape, strides)| of(shape, strides)));
    }

    #[test]
    fn divisors_are_all_or_nothing() {
        assert_eq!([0, 1, 8, 16, 24, 48].map(shape_divisor), [16, 1, 1, 16, 1, 16]);
        assert_eq!([1, 2, 4, 12, 16].map(|stride| stride_divisor(stride, DType::F32)), [1, 1, 4, 4, 4]);
        assert_eq!([1, 4, 8].map(|stride| stride_divisor(stride, DType::BF16)), [1, 1, 8]);
        assert_eq!([8, 16].map(|stride| stride_divisor(stride, DType::F8E5M2)), [1, 16]);
        let stated = |extent, viewed| stated_stride_divisor(extent, 3, DType::F16, viewed);
        assert_eq!([stated(1, true), stated(2, true), stated(1, false)], [8, 1, 1]);
        assert_eq!([3, 2].map(|stride| stride_divisor(stride, DType::F64)), [1, 2]);
        assert_eq!([0x1000, 0x1008].map(base_divisor), [16, 1]);
    }
}
