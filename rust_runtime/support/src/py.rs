//! Compile-time values and Python's arithmetic on them.
//!
//! Path conditions and generics are expressions over a kernel's constants, written in Python. They are
//! evaluated here as Python would: `//` and `%` round down, comparisons and `and`/`or` mix types, `/` gives
//! a float. What Python raises an error for, and what does not fit into 128 bits, is [`Value::Undefined`]; so is
//! everything that is computed from it, and a condition over it does not hold.

use std::cmp::Ordering;

/// A Python value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value<'a> {
    /// `None`
    None,
    /// A bool.
    Bool(bool),
    /// An int.
    Int(i128),
    /// A float.
    Float(f64),
    /// A str.
    Text(&'a str),
    /// No value: Python raises an error, or the result does not fit.
    Undefined,
}

use Value::{Bool, Float, Int, None as Nothing, Text, Undefined};

impl From<bool> for Value<'_> {
    fn from(value: bool) -> Self {
        Bool(value)
    }
}

impl From<i128> for Value<'_> {
    fn from(value: i128) -> Self {
        Int(value)
    }
}

impl From<f64> for Value<'_> {
    fn from(value: f64) -> Self {
        Float(value)
    }
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(value: &'a str) -> Self {
        Text(value)
    }
}

/// A number with bools counted as ints.
#[derive(Clone, Copy)]
enum Number {
    Int(i128),
    Float(f64),
}

/// Integers up to here are exact as floats.
const EXACT: i128 = 1 << 53;

impl<'a> Value<'a> {
    fn number(self) -> Option<Number> {
        match self {
            Bool(value) => Some(Number::Int(i128::from(value))),
            Int(value) => Some(Number::Int(value)),
            Float(value) => Some(Number::Float(value)),
            Nothing | Text(_) | Undefined => None,
        }
    }

    /// The integer, if it is one (or a bool).
    pub fn integer(self) -> Option<i128> {
        match self.number() {
            Some(Number::Int(value)) => Some(value),
            _ => None,
        }
    }

    fn is_undefined(self) -> bool {
        self == Undefined
    }

    /// What `if value:` would decide.
    fn truth(self) -> Option<bool> {
        match self {
            Nothing => Some(false),
            Bool(value) => Some(value),
            Int(value) => Some(value != 0),
            Float(value) => Some(value != 0.0),
            Text(value) => Some(!value.is_empty()),
            Undefined => None,
        }
    }

    fn undefined_unless(value: Option<impl Into<Value<'a>>>) -> Value<'a> {
        value.map_or(Undefined, Into::into)
    }
}

impl Number {
    fn float(self) -> f64 {
        match self {
            Number::Int(value) => value as f64,
            Number::Float(value) => value,
        }
    }

    /// As a float, unless that loses digits.
    fn exact(self) -> Option<f64> {
        match self {
            Number::Int(value) if value.unsigned_abs() > EXACT as u128 => None,
            _ => Some(self.float()),
        }
    }
}

// -- Decisions ------------------------------------------------------------------------------------

/// Whether a condition holds: the value is true.
pub fn holds<'a>(value: impl Into<Value<'a>>) -> bool {
    value.into().truth() == Some(true)
}

/// Whether a condition is false.
pub fn fails<'a>(value: impl Into<Value<'a>>) -> bool {
    value.into().truth() == Some(false)
}

/// Whether two constants are the same value of the same type but for bool and int; where a program depends on which
/// of these two it is, a condition asks [`is_bool`].
pub fn same<'a>(a: impl Into<Value<'a>>, b: impl Into<Value<'a>>) -> bool {
    match (a.into(), b.into()) {
        (Undefined, _) | (_, Undefined) => false,
        (Float(a), Float(b)) => a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan()),
        (Nothing, Nothing) => true,
        (Text(a), Text(b)) => a == b,
        (a, b) => matches!((a.integer(), b.integer()), (Some(a), Some(b)) if a == b),
    }
}

// -- Comparisons ----------------------------------------------------------------------------------

fn order(a: Number, b: Number) -> Option<Ordering> {
    match (a, b) {
        (Number::Int(a), Number::Int(b)) => Some(a.cmp(&b)),
        (Number::Float(a), Number::Float(b)) => a.partial_cmp(&b),
        (Number::Int(a), Number::Float(b)) => order_mixed(a, b),
        (Number::Float(a), Number::Int(b)) => order_mixed(b, a).map(Ordering::reverse),
    }
}

/// Compares without rounding the integer.
fn order_mixed(a: i128, b: f64) -> Option<Ordering> {
    const LIMIT: f64 = 170_141_183_460_469_231_731_687_303_715_884_105_728.0;
    if b.is_nan() {
        None
    } else if b >= LIMIT {
        Some(Ordering::Less)
    } else if b < -LIMIT {
        Some(Ordering::Greater)
    } else {
        Some(a.cmp(&(b.trunc() as i128)).then_with(|| 0.0_f64.total_cmp(&(b.fract() + 0.0))))
    }
}

fn equal(a: Value<'_>, b: Value<'_>) -> Option<bool> {
    match (a, b) {
        (Undefined, _) | (_, Undefined) => None,
        (Text(a), Text(b)) => Some(a == b),
        (Nothing, Nothing) => Some(true),
        _ => match (a.number(), b.number()) {
            (Some(a), Some(b)) => Some(order(a, b) == Some(Ordering::Equal)),
            _ => Some(false),
        },
    }
}

/// `a == b`
pub fn eq<'a>(a: impl Into<Value<'a>>, b: impl Into<Value<'a>>) -> Value<'a> {
    Value::undefined_unless(equal(a.into(), b.into()))
}

/// `a != b`
pub fn ne<'a>(a: impl Into<Value<'a>>, b: impl Into<Value<'a>>) -> Value<'a> {
    Value::undefined_unless(equal(a.into(), b.into()).map(|same| !same))
}

fn compare<'a>(a: Value<'a>, b: Value<'a>, wanted: fn(Ordering) -> bool) -> Value<'a> {
    match (a, b) {
        (Text(a), Text(b)) => Bool(wanted(a.cmp(b))),
        _ => match (a.number(), b.number()) {
            (Some(a), Some(b)) => Bool(order(a, b).is_some_and(wanted)),
            _ => Undefined,
        },
    }
}

/// `a < b`
pub fn lt<'a>(a: impl Into<Value<'a>>, b: impl Into<Value<'a>>) -> Value<'a> {
    compare(a.into(), b.into(), Ordering::is_lt)
}

/// `a <= b`
pub fn le<'a>(a: impl Into<Value<'a>>, b: impl Into<Value<'a>>) -> Value<'a> {
    compare(a.into(), b.into(), Ordering::is_le)
}

/// `a > b`
pub fn gt<'a>(a: impl Into<Value<'a>>, b: impl Into<Value<'a>>) -> Value<'a> {
    compare(a.into(), b.into(), Ordering::is_gt)
}

/// `a >= b`
pub fn ge<'a>(a: impl Into<Value<'a>>, b: impl Into<Value<'a>>) -> Value<'a> {
    compare(a.into(), b.into(), Ordering::is_ge)
}

/// `a in items`
pub fn is_in<'a>(a: impl Into<Value<'a>>, items: &[Value<'a>]) -> Value<'a> {
    let a = a.into();
    let results: Option<Vec<bool>> = items.iter().map(|item| equal(a, *item)).collect();
    Value::undefined_unless(results.filter(|_| !a.is_undefined()).map(|results| results.contains(&true)))
}

// -- Logic ----------------------------------------------------------------------------------------

/// `a and b`
pub fn and<'a>(a: impl Into<Value<'a>>, b: impl Into<Value<'a>>) -> Value<'a> {
    let (a, b) = (a.into(), b.into());
    choose(a, b, a)
}

/// `a or b`
pub fn or<'a>(a: impl Into<Value<'a>>, b: impl Into<Value<'a>>) -> Value<'a> {
    let (a, b) = (a.into(), b.into());
    choose(a, a, b)
}

/// `not a`
pub fn not<'a>(a: impl Into<Value<'a>>) -> Value<'a> {
    Value::undefined_unless(a.into().truth().map(|truth| !truth))
}

/// `bool(a)` of a number; a text or None where a number was translated is another program.
pub fn bool<'a>(a: impl Into<Value<'a>>) -> Value<'a> {
    let a = a.into();
    Value::undefined_unless(a.number().and_then(|_| a.truth()))
}

/// `type(a) is bool`
pub fn is_bool<'a>(a: impl Into<Value<'a>>) -> Value<'a> {
    match a.into() {
        Undefined => Undefined,
        value => Bool(matches!(value, Bool(_))),
    }
}

/// `a if condition else b`, with both computed.
pub fn choose<'a>(condition: impl Into<Value<'a>>, a: impl Into<Value<'a>>, b: impl Into<Value<'a>>) -> Value<'a> {
    let (a, b) = (a.into(), b.into());
    match condition.into().truth() {
        Some(truth) if !a.is_undefined() && !b.is_undefined() => {
            if truth {
                a
            } else {
                b
            }
        }
        _ => Undefined,
    }
}

// -- Arithmetic -----------------------------------------------------------------------------------

fn arithmetic<'a>(
    a: Value<'a>,
    b: Value<'a>,
    ints: fn(i128, i128) -> Option<i128>,
    floats: fn(f64, f64) -> Option<f64>,
) -> Value<'a> {
    match (a.number(), b.number()) {
        (Some(Number::Int(a)), Some(Number::Int(b))) => Value::undefined_unless(ints(a, b)),
        (Some(a), Some(b)) => Value::undefined_unless(floats(a.float(), b.float())),
        _ => Undefined,
    }
}

/// `a + b`
pub fn add<'a>(a: impl Into<Value<'a>>, b: impl Into<Value<'a>>) -> Value<'a> {
    arithmetic(a.into(), b.into(), i128::checked_add, |a, b| Some(a + b))
}

/// `a - b`
pub fn sub<'a>(a: impl Into<Value<'a>>, b: impl Into<Value<'a>>) -> Value<'a> {
    arithmetic(a.into(), b.into(), i128::checked_sub, |a, b| Some(a - b))
}

/// `a * b`
pub fn mul<'a>(a: impl Into<Value<'a>>, b: impl Into<Value<'a>>) -> Value<'a> {
    arithmetic(a.into(), b.into(), i128::checked_mul, |a, b| Some(a * b))
}

fn floor_div(a: i128, b: i128) -> Option<i128> {
    let quotient = a.checked_div(b)?;
    Some(if a % b != 0 && (a < 0) != (b < 0) { quotient - 1 } else { quotient })
}

fn floor_mod(a: i128, b: i128) -> Option<i128> {
    let rest = if b == -1 { 0 } else { a.checked_rem(b)? };
    Some(if rest != 0 && (rest < 0) != (b < 0) { rest + b } else { rest })
}

/// Quotient and rest as Python defines them for floats.
fn float_divmod(a: f64, b: f64) -> Option<(f64, f64)> {
    if b == 0.0 {
        return None;
    }
    let mut rest = a % b;
    let mut quotient = (a - rest) / b;
    if rest != 0.0 {
        if (b < 0.0) != (rest < 0.0) {
            rest += b;
            quotient -= 1.0;
        }
    } else {
        rest = 0.0_f64.copysign(b);
    }
    let floored = if quotient != 0.0 {
        let floor = quotient.floor();
        if quotient - floor > 0.5 { floor + 1.0 } else { floor }
    } else {
        0.0_f64.copysign(a / b)
    };
    Some((floored, rest))
}

/// `a // b`
pub fn floordiv<'a>(a: impl Into<Value<'a>>, b: impl Into<Value<'a>>) -> Value<'a> {
    arithmetic(a.into(), b.into(), floor_div, |a, b| float_divmod(a, b).map(|(quotient, _)| quotient))
}

/// `a % b`
pub fn modulo<'a>(a: impl Into<Value<'a>>, b: impl Into<Value<'a>>) -> Value<'a> {
    arithmetic(a.into(), b.into(), floor_mod, |a, b| float_divmod(a, b).map(|(_, rest)| rest))
}

/// `-(-a // b)`
pub fn cdiv<'a>(a: impl Into<Value<'a>>, b: impl Into<Value<'a>>) -> Value<'a> {
    neg(floordiv(neg(a), b))
}

/// `a / b`
pub fn truediv<'a>(a: impl Into<Value<'a>>, b: impl Into<Value<'a>>) -> Value<'a> {
    let (Some(a), Some(b)) = (a.into().number(), b.into().number()) else {
        return Undefined;
    };
    let (a, b) = match (a, b) {
        // Python divides ints of any size exactly and rounds once.
        (Number::Int(_), Number::Int(_)) => match (a.exact(), b.exact()) {
            (Some(a), Some(b)) => (a, b),
            _ => return Undefined,
        },
        _ => (a.float(), b.float()),
    };
    if b == 0.0 { Undefined } else { Float(a / b) }
}

/// `a ** b`
pub fn pow<'a>(a: impl Into<Value<'a>>, b: impl Into<Value<'a>>) -> Value<'a> {
    match (a.into().number(), b.into().number()) {
        (Some(Number::Int(a)), Some(Number::Int(b))) if b >= 0 => {
            let exponent = u32::try_from(b).unwrap_or(u32::MAX);
            Value::undefined_unless(if (-1..=1).contains(&a) {
                Some(small_power(a, b))
            } else {
                a.checked_pow(exponent)
            })
        }
        (Some(a), Some(b)) => Value::undefined_unless(float_pow(a.float(), b.float())),
        _ => Undefined,
    }
}

fn small_power(base: i128, exponent: i128) -> i128 {
    match base {
        _ if exponent == 0 => 1,
        -1 if exponent % 2 != 0 => -1,
        -1 => 1,
        other => other,
    }
}

fn float_pow(a: f64, b: f64) -> Option<f64> {
    if a == 0.0 && b < 0.0 {
        return None;
    }
    if a < 0.0 && a.is_finite() && b.is_finite() && b.fract() != 0.0 {
        return None; // a complex number
    }
    let result = a.powf(b);
    (result.is_finite() || !a.is_finite() || !b.is_finite()).then_some(result)
}

/// `-a`
pub fn neg<'a>(a: impl Into<Value<'a>>) -> Value<'a> {
    match a.into().number() {
        Some(Number::Int(a)) => Value::undefined_unless(a.checked_neg()),
        Some(Number::Float(a)) => Float(-a),
        None => Undefined,
    }
}

/// `abs(a)`
pub fn abs<'a>(a: impl Into<Value<'a>>) -> Value<'a> {
    match a.into().number() {
        Some(Number::Int(a)) => Value::undefined_unless(a.checked_abs()),
        Some(Number::Float(a)) => Float(a.abs()),
        None => Undefined,
    }
}

/// `min(a, ..)`
pub fn min<'a>(items: &[Value<'a>]) -> Value<'a> {
    extreme(items, lt)
}

/// `max(a, ..)`
pub fn max<'a>(items: &[Value<'a>]) -> Value<'a> {
    extreme(items, gt)
}

fn extreme<'a>(items: &[Value<'a>], better: fn(Value<'a>, Value<'a>) -> Value<'a>) -> Value<'a> {
    let Some((first, rest)) = items.split_first() else {
        return Undefined;
    };
    rest.iter().fold(*first, |best, item| choose(better(*item, best), *item, best))
}

// -- Bits -----------------------------------------------------------------------------------------

fn bitwise<'a>(a: Value<'a>, b: Value<'a>, bits: fn(i128, i128) -> i128) -> Value<'a> {
    match (a, b) {
        (Bool(a), Bool(b)) => Bool(bits(i128::from(a), i128::from(b)) != 0),
        _ => match (a.integer(), b.integer()) {
            (Some(a), Some(b)) => Int(bits(a, b)),
            _ => Undefined,
        },
    }
}

/// `a | b`
pub fn bit_or<'a>(a: impl Into<Value<'a>>, b: impl Into<Value<'a>>) -> Value<'a> {
    bitwise(a.into(), b.into(), |a, b| a | b)
}

/// `a ^ b`
pub fn bit_xor<'a>(a: impl Into<Value<'a>>, b: impl Into<Value<'a>>) -> Value<'a> {
    bitwise(a.into(), b.into(), |a, b| a ^ b)
}

/// `a & b`
pub fn bit_and<'a>(a: impl Into<Value<'a>>, b: impl Into<Value<'a>>) -> Value<'a> {
    bitwise(a.into(), b.into(), |a, b| a & b)
}

/// `~a`
pub fn invert<'a>(a: impl Into<Value<'a>>) -> Value<'a> {
    Value::undefined_unless(a.into().integer().map(|a| !a))
}

/// `a << b`
pub fn lshift<'a>(a: impl Into<Value<'a>>, b: impl Into<Value<'a>>) -> Value<'a> {
    let (Some(a), Some(b)) = (a.into().integer(), b.into().integer()) else {
        return Undefined;
    };
    if b < 0 {
        return Undefined;
    }
    if a == 0 {
        return Int(0);
    }
    let shifted = u32::try_from(b).ok().and_then(|b| a.checked_shl(b)).filter(|shifted| shifted >> b == a);
    Value::undefined_unless(shifted)
}

/// `a >> b`
pub fn rshift<'a>(a: impl Into<Value<'a>>, b: impl Into<Value<'a>>) -> Value<'a> {
    match (a.into().integer(), b.into().integer()) {
        (Some(a), Some(b)) if b >= 0 => Int(a >> b.min(127)),
        _ => Undefined,
    }
}

/// The least power of two that is not less than `a`.
pub fn next_power_of_2<'a>(a: impl Into<Value<'a>>) -> Value<'a> {
    let less = a.into().integer().and_then(|a| a.checked_sub(1));
    let bits = less.map(|less| u128::BITS - less.unsigned_abs().leading_zeros());
    Value::undefined_unless(bits.filter(|bits| *bits < 127).map(|bits| 1_i128 << bits))
}

/// The power of two in `a`, at most 1024.
pub fn pow2_divisor<'a>(a: impl Into<Value<'a>>) -> Value<'a> {
    Value::undefined_unless(a.into().integer().map(|a| if a == 0 { 0 } else { 1_i128 << a.trailing_zeros().min(10) }))
}

/// `math.gcd(a, b)`
pub fn gcd<'a>(a: impl Into<Value<'a>>, b: impl Into<Value<'a>>) -> Value<'a> {
    let (Some(a), Some(b)) = (a.into().integer(), b.into().integer()) else {
        return Undefined;
    };
    let (mut a, mut b) = (a.unsigned_abs(), b.unsigned_abs());
    while b != 0 {
        (a, b) = (b, a % b);
    }
    Value::undefined_unless(i128::try_from(a).ok())
}

// -- Conversions and functions --------------------------------------------------------------------

/// `int(a)`
pub fn int<'a>(a: impl Into<Value<'a>>) -> Value<'a> {
    match a.into().number() {
        Some(Number::Int(a)) => Int(a),
        Some(Number::Float(a)) if a.abs() < 1.7e38 => Int(a.trunc() as i128),
        _ => Undefined,
    }
}

/// `float(a)`
pub fn float<'a>(a: impl Into<Value<'a>>) -> Value<'a> {
    Value::undefined_unless(a.into().number().map(Number::float))
}

/// A float rounded to an element type, ties to even; only a float is one (an int makes another program).
pub fn round_to<'a>(a: impl Into<Value<'a>>, dtype: &str) -> Value<'a> {
    match (a.into(), dtype) {
        (Float(a), _) if !a.is_finite() => Float(a),
        (Float(a), "float64") => Float(a),
        (Float(a), "float32") => Float(f64::from(a as f32)),
        (Float(a), "float16") => Float(to_precision(a, 11, -14, 15)),
        (Float(a), "bfloat16") => Float(to_precision(a, 8, -126, 127)),
        _ => Undefined,
    }
}

/// A finite number rounded to `bits` of significand, ties to even, with exponents from `lowest` to `highest`.
fn to_precision(a: f64, bits: i32, lowest: i32, highest: i32) -> f64 {
    let stored = ((a.to_bits() >> 52) & 0x7ff) as i32 - 1023; // a subnormal is far below `lowest`
    let unit = 2.0_f64.powi(stored.max(lowest) - (bits - 1));
    let rounded = (a / unit).round_ties_even() * unit;
    if rounded.abs() >= 2.0_f64.powi(highest) * 2.0 { f64::INFINITY.copysign(a) } else { rounded }
}

/// The bits of a float as a float32; every NaN is Python's.
pub fn f32_bits<'a>(a: impl Into<Value<'a>>) -> Value<'a> {
    match a.into() {
        Float(a) if a.is_nan() => Int(0x7fc0_0000),
        Float(a) => Int(i128::from((a as f32).to_bits().cast_signed())),
        _ => Undefined,
    }
}

fn function<'a>(a: Value<'a>, defined: fn(f64) -> bool, f: fn(f64) -> f64) -> Value<'a> {
    let argument = a.number().map(Number::float).filter(|a| a.is_nan() || defined(*a));
    let result = argument.map(|a| (a, f(a))).filter(|(a, result)| result.is_finite() || !a.is_finite());
    Value::undefined_unless(result.map(|(_, result)| result))
}

/// `math.sqrt(a)`
pub fn sqrt<'a>(a: impl Into<Value<'a>>) -> Value<'a> {
    function(a.into(), |a| a >= 0.0, f64::sqrt)
}

/// `math.exp(a)`
pub fn exp<'a>(a: impl Into<Value<'a>>) -> Value<'a> {
    function(a.into(), |_| true, f64::exp)
}

/// `math.log(a)`
pub fn log<'a>(a: impl Into<Value<'a>>) -> Value<'a> {
    function(a.into(), |a| a > 0.0, f64::ln)
}

/// `math.atan2(a, b)`
pub fn atan2<'a>(a: impl Into<Value<'a>>, b: impl Into<Value<'a>>) -> Value<'a> {
    let (a, b) = (a.into().number().map(Number::float), b.into().number().map(Number::float));
    Value::undefined_unless(a.zip(b).map(|(a, b)| a.atan2(b)))
}

/// `math.log2(a)`
pub fn log2<'a>(a: impl Into<Value<'a>>) -> Value<'a> {
    function(a.into(), |a| a > 0.0, f64::log2)
}
