//! Element types: their code in the C interface, and their names in Rust and in cuda.tile.

macro_rules! dtypes {
    ($($variant:ident = $code:literal, $rust:literal, $python:literal, $bits:literal;)*) => {
        /// An element type.
        #[repr(i32)]
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum DType {
            $(#[doc = concat!("`", $python, "`")] $variant = $code,)*
        }

        impl DType {
            /// All element types, by code.
            pub const ALL: &'static [DType] = &[$(DType::$variant),*];

            /// The type's name in cutile.
            pub const fn rust(self) -> &'static str {
                match self { $(DType::$variant => $rust,)* }
            }

            /// The type's name in cuda.tile.
            pub const fn python(self) -> &'static str {
                match self { $(DType::$variant => $python,)* }
            }

            /// Bits that an element takes in memory.
            pub const fn bits(self) -> i64 {
                match self { $(DType::$variant => $bits,)* }
            }
        }
    };
}

dtypes! {
    Bool = 0, "bool", "bool_", 8;
    I8 = 1, "i8", "int8", 8;
    I16 = 2, "i16", "int16", 16;
    I32 = 3, "i32", "int32", 32;
    I64 = 4, "i64", "int64", 64;
    U8 = 5, "u8", "uint8", 8;
    U16 = 6, "u16", "uint16", 16;
    U32 = 7, "u32", "uint32", 32;
    U64 = 8, "u64", "uint64", 64;
    F16 = 9, "f16", "float16", 16;
    BF16 = 10, "bf16", "bfloat16", 16;
    F32 = 11, "f32", "float32", 32;
    F64 = 12, "f64", "float64", 64;
    TF32 = 13, "tf32", "tfloat32", 32;
    F8E4M3FN = 14, "f8e4m3fn", "float8_e4m3fn", 8;
    F8E5M2 = 15, "f8e5m2", "float8_e5m2", 8;
    F8E8M0FNU = 16, "f8e8m0fnu", "float8_e8m0fnu", 8;
    F4E2M1FN = 17, "f4e2m1fn", "float4_e2m1fn", 4;
}

impl DType {
    /// Bytes that an element takes in memory (1 where two share a byte).
    pub const fn bytes(self) -> i64 {
        (self.bits() + 7) / 8
    }

    /// The type with this code.
    pub fn from_code(code: i32) -> Option<DType> {
        usize::try_from(code).ok().and_then(|index| DType::ALL.get(index)).copied()
    }

    /// The type with this type code, number of bits and number of lanes in DLPack.
    pub fn from_dlpack(code: u8, bits: u8, lanes: u16) -> Option<DType> {
        Some(match (code, bits, lanes) {
            (0, 8, 1) => DType::I8,
            (0, 16, 1) => DType::I16,
            (0, 32, 1) => DType::I32,
            (0, 64, 1) => DType::I64,
            (1, 8, 1) => DType::U8,
            (1, 16, 1) => DType::U16,
            (1, 32, 1) => DType::U32,
            (1, 64, 1) => DType::U64,
            (2, 16, 1) => DType::F16,
            (2, 32, 1) => DType::F32,
            (2, 64, 1) => DType::F64,
            (4, 16, 1) => DType::BF16,
            (6, 8, 1) => DType::Bool,
            (10, 8, 1) => DType::F8E4M3FN,
            (12, 8, 1) => DType::F8E5M2,
            (14, 8, 1) => DType::F8E8M0FNU,
            _ => return None,
        })
    }

    /// The type with this name in cuda.tile.
    pub fn from_python(name: &str) -> Option<DType> {
        DType::ALL.iter().copied().find(|dtype| dtype.python() == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_positions() {
        for (index, dtype) in DType::ALL.iter().enumerate() {
            assert_eq!(*dtype as usize, index);
            assert_eq!(DType::from_code(*dtype as i32), Some(*dtype));
            assert_eq!(DType::from_python(dtype.python()), Some(*dtype));
        }
        assert_eq!(DType::from_code(-1), None);
        assert_eq!(DType::from_code(99), None);
    }
}
