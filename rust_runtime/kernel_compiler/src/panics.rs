//! Turns panics of the compiler into failures, and keeps them off stderr.

use std::cell::{Cell, RefCell};
use std::panic::{self, AssertUnwindSafe, PanicHookInfo};
use std::sync::Once;

use crate::Failure;

thread_local! {
    static CATCHING: Cell<bool> = const { Cell::new(false) };
    static CAUGHT: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Runs `work`; a panic in it becomes a [`Failure`] that says where in the compiler it happened.
pub(crate) fn catch<T>(work: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    install_hook();
    CATCHING.set(true);
    let result = panic::catch_unwind(AssertUnwindSafe(work));
    CATCHING.set(false);
    result.unwrap_or_else(|_| {
        let what = CAUGHT.take().unwrap_or_else(|| "unknown panic".to_owned());
        Err(Failure::new(format!("the cuTile Rust compiler panicked: {what}")))
    })
}

/// Puts a hook before the present one: it records on threads that catch, and passes on elsewhere.
fn install_hook() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let previous = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if CATCHING.get() {
                CAUGHT.set(Some(describe(info)));
            } else {
                previous(info);
            }
        }));
    });
}

fn describe(info: &PanicHookInfo<'_>) -> String {
    let payload = info.payload(); // `payload_as_str` would need Rust 1.91
    let text = payload.downcast_ref::<String>().map(String::as_str).or(payload.downcast_ref::<&str>().copied());
    let message = text.unwrap_or("unknown panic");
    match info.location() {
        Some(place) => format!("{message} (at {}:{})", crate_path(place.file()), place.line()),
        None => message.to_owned(),
    }
}

/// Drops the part of a path that only says where this machine keeps its crates.
fn crate_path(file: &str) -> &str {
    let Some(source) = file.rfind("/src/") else {
        return file;
    };
    let start = file[..source].rfind('/').map_or(0, |slash| slash + 1);
    &file[start..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_a_failure_and_the_next_call_is_clean() {
        let failed = catch::<()>(|| panic!("no {}", "way")).unwrap_err();
        assert!(failed.message.contains("panicked: no way (at "), "{}", failed.message);
        assert_eq!(catch(|| Ok(1)), Ok(1));
    }

    #[test]
    fn paths_start_at_the_crate() {
        assert_eq!(crate_path("/x/index/cutile-1.0/src/a/b.rs"), "cutile-1.0/src/a/b.rs");
        assert_eq!(crate_path("lib.rs"), "lib.rs");
    }
}
