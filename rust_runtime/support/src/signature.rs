//! All of a call that decides what is launched, as a few integers: the key under which a launch is remembered.
//!
//! Conditions, generics and facts look at constants, at element types, ranks and the types of scalars, and of
//! shapes, strides and addresses only at what [`array_bits`] holds and at whether an array overlaps itself. Two calls with the same signature therefore
//! choose the same entry with the same generics and compile the same program; only addresses, sizes, scalars and
//! the grid differ. The exception are extents other than 1 that an entry's type fixes: see [`super::choose::facts_decide`].

use super::abi::{Launch, kind};
use super::call::Call;
use super::facts::array_bits;
use super::py::Value;

/// Makes the signature of a call.
pub fn signature(call: &Call<'_>) -> Vec<u64> {
    let kernel = call.kernel;
    let Launch { device, occupancy, num_ctas, num_worker_warps, opt_level_plus_one, .. } = *call.launch;
    let small = |a: i32, b: i32| u64::from(a as u32) << 32 | u64::from(b as u32);
    let mut words = Vec::with_capacity(3 + kernel.arrays.len() + kernel.scalars.len() + 2 * kernel.constants.len());
    words.push(std::ptr::from_ref(kernel) as u64);
    words.push(small(device, occupancy));
    words.push(small(num_ctas, num_worker_warps | opt_level_plus_one << 16));
    for index in 0..kernel.arrays.len() {
        // An array has at most 33 bits of facts: four for each axis, one for its address.
        let array = call.array(index);
        let shape = u64::from(call.list(index).is_some()) << 63
            | u64::from(call.overlaps(index)) << 62
            | (array.ndim as u64) << 40
            | (array.dtype as u64) << 48;
        words.push(array_bits(call, index) | shape);
    }
    words.extend((0..kernel.scalars.len()).map(|index| call.scalar_type(index).map_or(u64::MAX, |dtype| dtype as u64)));
    for index in 0..kernel.constants.len() {
        push_value(&mut words, call.constant(index));
    }
    words
}

fn push_value(words: &mut Vec<u64>, value: Value<'_>) {
    let (tag, payload) = match value {
        Value::None => (kind::NONE, 0),
        Value::Bool(value) => (kind::BOOL, u64::from(value)),
        Value::Int(value) => (kind::INT, value as u64),
        Value::Float(value) => (kind::FLOAT, value.to_bits()),
        Value::Text(text) => (kind::TEXT, text.len() as u64),
        Value::Undefined => (-1, 0),
    };
    words.extend([tag as u64, payload]);
    if let Value::Text(text) = value {
        words.extend(
            text.as_bytes().chunks(8).map(|part| part.iter().fold(0, |word, &byte| word << 8 | u64::from(byte))),
        );
    }
}
