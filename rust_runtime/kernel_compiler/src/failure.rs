//! The one error type: a message and the place in the source text it is about.

use cutile_compiler::ast::SourceLocation;
use cutile_compiler::error::JITError;

/// Why a text could not be compiled. Line and column count from 1; 0 means unknown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// What went wrong, in the compiler's words.
    pub message: String,
    /// Line in the source text.
    pub line: usize,
    /// Column in the source text, in characters.
    pub column: usize,
}

impl Failure {
    /// A failure without a known place.
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), line: 0, column: 0 }
    }

    /// Whether the failure says where it is.
    pub(crate) fn is_located(&self) -> bool {
        self.line > 0
    }

    /// The same failure, placed at the start of `span`.
    pub(crate) fn at(mut self, span: proc_macro2::Span) -> Self {
        let start = span.start();
        self.line = start.line;
        self.column = start.column + 1;
        self
    }

    /// Converts a compiler error; only locations in `file` are kept as locations.
    pub(crate) fn from_jit(error: JITError, file: &str) -> Self {
        match error {
            JITError::Generic(message) => Self::new(message),
            JITError::Located(message, place) => Self::from_located(message, &place, file),
            JITError::Anyhow(error) => match error.downcast::<JITError>() {
                Ok(inner) => Self::from_jit(inner, file),
                Err(error) => Self::new(format!("{error:#}")),
            },
        }
    }

    fn from_located(message: String, place: &SourceLocation, file: &str) -> Self {
        let mut failure = Self::new(message);
        if place.is_known() && place.file == file {
            failure.line = place.line;
            failure.column = place.column + 1;
        }
        failure
    }
}

impl From<syn::Error> for Failure {
    fn from(error: syn::Error) -> Self {
        Self::new(error.to_string()).at(error.span())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_places_in_the_own_file_are_kept() {
        let here = SourceLocation::new("kernel.rs".into(), 3, 4);
        let there = SourceLocation::new("core.rs".into(), 3, 4);
        let own = Failure::from_jit(JITError::located("m", here), "kernel.rs");
        let foreign = Failure::from_jit(JITError::located("m", there), "kernel.rs");
        assert_eq!((own.line, own.column), (3, 5));
        assert_eq!((foreign.line, foreign.column), (0, 0));
    }

    #[test]
    fn an_error_wrapped_by_anyhow_keeps_its_place() {
        let place = SourceLocation::new("kernel.rs".into(), 7, 0);
        let wrapped = JITError::Anyhow(JITError::located("m", place).into());
        let failure = Failure::from_jit(wrapped, "kernel.rs");
        assert_eq!((failure.message.as_str(), failure.line), ("m", 7));
    }
}
