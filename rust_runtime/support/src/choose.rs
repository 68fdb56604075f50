//! The choice of the entry, and the values of its generics.

use std::fmt::Write as _;

use super::call::Call;
use super::dtype::DType;
use super::py::Value;
use super::status::{Failure, Status};
use super::table::{Element, Entry, Extent, Generic, Kernel, Param};

/// The value of a generic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Argument {
    /// An element type.
    Type(DType),
    /// An `i32`.
    Size(i32),
    /// A `bool`.
    Flag(bool),
}

impl Argument {
    /// As the compiler reads it.
    pub fn text(self) -> String {
        match self {
            Argument::Type(dtype) => dtype.rust().to_owned(),
            Argument::Size(value) => value.to_string(),
            Argument::Flag(value) => value.to_string(),
        }
    }

    /// As part of a key.
    pub fn bits(self) -> u64 {
        match self {
            Argument::Type(dtype) => dtype as u64,
            Argument::Size(value) => u64::from(value as u32),
            Argument::Flag(value) => u64::from(value),
        }
    }
}

/// The entry that serves a call.
#[derive(Debug, Clone)]
pub struct Chosen {
    /// The entry.
    pub entry: &'static Entry,
    /// The values of its generics.
    pub generics: Vec<Argument>,
}

/// Finds the first entry that serves the call, one that compiles in what the reference would if there is one.
/// The failure tells of the entry that came closest.
pub fn choose(call: &Call<'_>) -> Result<Chosen, Failure> {
    let mut closest: Option<Miss> = None;
    let mut inexact: Option<Chosen> = None;
    for entry in call.kernel.entries {
        match try_entry(call, entry) {
            Ok(generics) if is_exact(call, entry) => return Ok(Chosen { entry, generics }),
            Ok(generics) => inexact = inexact.or(Some(Chosen { entry, generics })),
            Err(miss) if closest.as_ref().is_none_or(|best| miss.stage > best.stage) => closest = Some(miss),
            Err(_) => {}
        }
    }
    if let Some(chosen) = inexact {
        return Ok(chosen);
    }
    let kernel = call.kernel.name;
    Err(match closest {
        Some(Miss { stage: Stage::Condition, .. }) | None => Failure::new(Status::NoEntry, no_entry(call)),
        Some(Miss { status, message, .. }) => Failure::new(status, format!("`{kernel}`: {message}")),
    })
}

/// How far an entry came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    Rank,
    Dtype,
    Scalar,
    Condition,
}

struct Miss {
    stage: Stage,
    status: Status,
    message: String,
}

impl Miss {
    fn new(stage: Stage, status: Status, message: String) -> Self {
        Self { stage, status, message }
    }

    fn condition() -> Self {
        Self::new(Stage::Condition, Status::NoEntry, String::new())
    }
}

fn try_entry(call: &Call<'_>, entry: &Entry) -> Result<Vec<Argument>, Miss> {
    ranks(call, entry)?;
    types(call, entry)?;
    scalars(call, entry)?;
    if !(entry.applies)(call) {
        return Err(Miss::condition());
    }
    let generics: Option<Vec<_>> = entry.generics.iter().map(|generic| evaluate(call, generic)).collect();
    let generics = generics.ok_or_else(Miss::condition)?;
    extents(call, entry, &generics)?;
    Ok(generics)
}

fn ranks(call: &Call<'_>, entry: &Entry) -> Result<(), Miss> {
    for param in entry.params {
        let (index, wanted, is_list) = match param {
            Param::Array { index, extents, .. } => (*index, extents.len(), false),
            Param::List { index, rank, .. } => (*index, *rank, true),
            Param::Scalar { .. } => continue,
        };
        let name = call.kernel.arrays[index];
        if call.list(index).is_some() != is_list {
            let (given, wanted) = if is_list { ("an array", "a list") } else { ("a list", "an array") };
            let message = format!("`{name}` is {given}, and was translated for {wanted}");
            return Err(Miss::new(Stage::Rank, Status::Value, message));
        }
        let given = call.rank_of(index);
        if given != wanted {
            let message = format!("array `{name}` has rank {given}, and was translated for rank {wanted}");
            return Err(Miss::new(Stage::Rank, Status::Rank, message));
        }
    }
    Ok(())
}

/// Whether the arrays' element types are those of the entry's parameters.
fn types(call: &Call<'_>, entry: &Entry) -> Result<(), Miss> {
    for param in entry.params {
        let (Param::Array { index, element, .. } | Param::List { index, element, .. }) = param else { continue };
        let known: &[DType] = match element {
            Element::Fixed(dtype) => std::slice::from_ref(dtype),
            Element::Generic(position) => match &entry.generics[*position] {
                Generic::Type(_, known, value) => value(call).as_ref().map_or(&[], |dtype| only(known, *dtype)),
                _ => &[],
            },
        };
        if !call.element(*index).is_some_and(|given| known.contains(&given)) {
            return Err(wrong_type(call, entry, *index, *element));
        }
    }
    Ok(())
}

/// The part of `known` that is `dtype`.
fn only(known: &'static [DType], dtype: DType) -> &'static [DType] {
    let position = known.iter().position(|one| *one == dtype);
    position.map_or(&[], |position| &known[position..=position])
}

fn wrong_type(call: &Call<'_>, entry: &Entry, index: usize, element: Element) -> Miss {
    let given = call.element(index).map_or("unknown", DType::python);
    let wanted = match element {
        Element::Fixed(dtype) => dtype.python().to_owned(),
        Element::Generic(position) => match &entry.generics[position] {
            Generic::Type(_, known, value) => match value(call).filter(|dtype| known.contains(dtype)) {
                Some(dtype) => format!("{} like the other arrays of its type", dtype.python()),
                None => known.iter().map(|dtype| dtype.python()).collect::<Vec<_>>().join(", "),
            },
            _ => String::new(),
        },
    };
    let name = call.kernel.arrays[index];
    let message = format!("array `{name}` has elements of type {given}, and was translated for {wanted}");
    Miss::new(Stage::Dtype, Status::Dtype, message)
}

fn scalars(call: &Call<'_>, entry: &Entry) -> Result<(), Miss> {
    for param in entry.params {
        if let Param::Scalar { index, dtype, .. } = param
            && call.scalar_type(*index) != Some(*dtype)
        {
            let (name, wanted) = (call.kernel.scalars[*index], dtype.python());
            let given = call.scalar_type(*index).map_or("no number", DType::python);
            let message = format!("scalar `{name}` is {given}, and was translated for {wanted}");
            return Err(Miss::new(Stage::Scalar, Status::Value, message));
        }
    }
    Ok(())
}

fn evaluate(call: &Call<'_>, generic: &Generic) -> Option<Argument> {
    match generic {
        Generic::Type(_, _, value) => value(call).map(Argument::Type),
        Generic::Size(_, value) => value(call).map(Argument::Size),
        Generic::Flag(_, value) => value(call).map(Argument::Flag),
    }
}

/// Whether the arrays' extents are what the parameters' types say once the generics are known.
fn extents(call: &Call<'_>, entry: &Entry, generics: &[Argument]) -> Result<(), Miss> {
    for param in entry.params {
        let Param::Array { index, extents, .. } = param else { continue };
        for (extent, given) in extents.iter().zip(call.shape(*index)) {
            if static_extent(*extent, generics).is_some_and(|wanted| i64::from(wanted) != *given) {
                return Err(Miss::condition());
            }
        }
    }
    Ok(())
}

/// Whether the entry's types have a place for each extent of 1, which the reference compiles in.
fn is_exact(call: &Call<'_>, entry: &Entry) -> bool {
    entry.params.iter().all(|param| match param {
        Param::Array { index, extents, .. } => {
            let mut axes = extents.iter().zip(call.shape(*index));
            !axes.any(|(extent, &given)| given == 1 && matches!(extent, Extent::Dynamic))
        }
        Param::List { .. } | Param::Scalar { .. } => true,
    })
}

/// Whether calls that agree in constants, types and facts choose the same entry: no entry's type fixes an extent
/// other than 1 (the facts say of an extent whether it is 1).
pub fn facts_decide(call: &Call<'_>) -> bool {
    let is_small = |entry: &Entry, extent: &Extent| match extent {
        Extent::Dynamic => true,
        Extent::Static(value) => *value == 1,
        Extent::Generic(position) => match evaluate(call, &entry.generics[*position]) {
            Some(Argument::Size(value)) => value == -1 || value == 1,
            _ => true,
        },
    };
    call.kernel.entries.iter().all(|entry| {
        entry.params.iter().all(|param| match param {
            Param::Array { extents, .. } => extents.iter().all(|extent| is_small(entry, extent)),
            Param::List { .. } | Param::Scalar { .. } => true,
        })
    })
}

/// The extent that a parameter's type fixes, if it does.
pub(crate) fn static_extent(extent: Extent, generics: &[Argument]) -> Option<i32> {
    match extent {
        Extent::Dynamic => None,
        Extent::Static(value) => Some(value),
        Extent::Generic(position) => match generics[position] {
            Argument::Size(value) => Some(value).filter(|value| *value != -1),
            _ => None,
        },
    }
}

fn no_entry(call: &Call<'_>) -> String {
    let Kernel { name, constants, entries, .. } = call.kernel;
    let given: Vec<_> = constants.iter().enumerate().map(|(i, n)| format!("{n}={}", shown(call.constant(i)))).collect();
    let mut text = format!("`{name}` was not translated for {}; there is", given.join(", "));
    for (index, entry) in entries.iter().enumerate() {
        let _ = write!(text, "{} {} where {}", if index == 0 { "" } else { "," }, entry.name, entry.when);
    }
    if entries.is_empty() {
        text.push_str(" no entry at all");
    }
    text
}

fn shown(value: Value<'_>) -> String {
    match value {
        Value::None => "None".to_owned(),
        Value::Bool(value) => if value { "True" } else { "False" }.to_owned(),
        Value::Int(value) => value.to_string(),
        Value::Float(value) => format!("{value:?}"),
        Value::Text(value) => format!("{value:?}"),
        Value::Undefined => "?".to_owned(),
    }
}

// What tables compute generics with

/// What is computed from constants: an int.
pub fn size<'a>(value: impl Into<Value<'a>>) -> Option<i32> {
    value.into().integer().and_then(|value| i32::try_from(value).ok())
}

/// A constant where a bool would make another program than the int of the same value.
pub fn count<'a>(value: impl Into<Value<'a>>) -> Option<i32> {
    match value.into() {
        Value::Bool(_) => None,
        other => size(other),
    }
}

/// An extent: an int, or -1 where it is read at run time.
pub fn extent<'a>(value: impl Into<Value<'a>>) -> Option<i32> {
    match value.into() {
        Value::None => Some(-1),
        other => size(other),
    }
}

/// A bool.
pub fn flag<'a>(value: impl Into<Value<'a>>) -> Option<bool> {
    match super::py::bool(value) {
        Value::Bool(value) => Some(value),
        _ => None,
    }
}

/// An element type, by its name in cuda.tile.
pub fn dtype<'a>(value: impl Into<Value<'a>>) -> Option<DType> {
    match value.into() {
        Value::Text(name) => DType::from_python(name),
        _ => None,
    }
}
