//! Named codes, the last message of a thread, and the guard that keeps panics on this side.

use std::any::Any;
use std::cell::RefCell;
use std::ffi::{CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};

macro_rules! statuses {
    ($($(#[$doc:meta])* $variant:ident = $code:literal, $name:literal;)*) => {
        /// What a C function returns.
        #[repr(i32)]
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Status { $($(#[$doc])* $variant = $code,)* }

        impl Status {
            /// All codes.
            pub const ALL: &'static [Status] = &[$(Status::$variant),*];

            /// The code's name, with a terminating zero.
            fn terminated(self) -> &'static str {
                match self { $(Status::$variant => concat!($name, "\0"),)* }
            }
        }
    };
}

statuses! {
    /// Done: the launch is enqueued.
    Ok = 0, "OK";
    /// A pointer that has to point somewhere is null.
    NullPointer = 1, "NULL_POINTER";
    /// The caller was written for another version of this interface.
    AbiMismatch = 2, "ABI_MISMATCH";
    /// Another number of arrays, scalars or constants than the kernel has.
    ArgumentCount = 3, "ARGUMENT_COUNT";
    /// A rank that the kernel was not translated for, or one that is out of range.
    Rank = 4, "RANK";
    /// An unknown element type, or one that the kernel was not translated for.
    Dtype = 5, "DTYPE";
    /// A negative extent.
    Shape = 6, "SHAPE";
    /// A negative stride.
    Stride = 7, "STRIDE";
    /// An extent or a stride that doesn't fit into 32 bits.
    IndexOverflow = 8, "INDEX_OVERFLOW";
    /// A device that does not exist, or an array that lies on another one.
    Device = 9, "DEVICE";
    /// A scalar or constant that can't be read, or of a type that the kernel does not take.
    Value = 10, "VALUE";
    /// A grid without blocks, or one that is too large.
    Grid = 11, "GRID";
    /// A hint or flag out of range.
    Hint = 12, "HINT";
    /// The kernel was not translated for these constants.
    NoEntry = 13, "NO_ENTRY";
    /// There is no CUDA driver, or it does not work.
    NoDriver = 14, "NO_DRIVER";
    /// The kernel doesn't compile for this device.
    Compile = 15, "COMPILE";
    /// The driver refused the launch.
    Launch = 16, "LAUNCH";
    /// A mistake in this library.
    Panic = 17, "PANIC";
}

impl Status {
    /// The code's name.
    pub fn name(self) -> &'static str {
        self.terminated().trim_end_matches('\0')
    }
}

/// Why a call failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The code.
    pub status: Status,
    /// What was wrong with which argument.
    pub message: String,
}

impl Failure {
    /// A failure with its message.
    pub fn new(status: Status, message: impl Into<String>) -> Self {
        Self { status, message: message.into() }
    }
}

thread_local! {
    static LAST_ERROR: RefCell<CString> = RefCell::default();
    static LAST_PLAN: RefCell<CString> = RefCell::default();
}

fn c_string(text: &str) -> CString {
    CString::new(text.replace('\0', " ")).unwrap_or_default()
}

/// Leaves a description for `cutile_kernels_last_plan`.
pub(crate) fn set_plan(text: &str) {
    LAST_PLAN.with_borrow_mut(|last| *last = c_string(text));
}

/// Runs `work` and returns its code. What went wrong, panics included, becomes this thread's last error.
pub fn guarded(work: impl FnOnce() -> Result<(), Failure>) -> i32 {
    let failure = match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(())) => return Status::Ok as i32,
        Ok(Err(failure)) => failure,
        Err(payload) => Failure::new(Status::Panic, panic_text(payload.as_ref())),
    };
    // The payload of a panic may panic when it is dropped, and a thread's storage may be gone at its end:
    // neither may cross the boundary.
    let _ = catch_unwind(AssertUnwindSafe(|| {
        let _ = LAST_ERROR.try_with(|last| {
            if let Ok(mut last) = last.try_borrow_mut() {
                *last = c_string(&failure.message);
            }
        });
    }));
    failure.status as i32
}

fn panic_text(payload: &(dyn Any + Send)) -> String {
    let known =
        payload.downcast_ref::<&str>().copied().or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    known.unwrap_or("unknown panic").to_owned()
}

fn pointer_of(cell: &'static std::thread::LocalKey<RefCell<CString>>) -> *const c_char {
    cell.try_with(|last| last.try_borrow().map_or(c"".as_ptr(), |last| last.as_ptr())).unwrap_or(c"".as_ptr())
}

/// The message of this thread's last failure; valid until the thread's next call.
#[unsafe(no_mangle)]
pub extern "C" fn cutile_kernels_last_error() -> *const c_char {
    pointer_of(&LAST_ERROR)
}

/// What this thread's last dry run found, as JSON; valid until the thread's next call.
#[unsafe(no_mangle)]
pub extern "C" fn cutile_kernels_last_plan() -> *const c_char {
    pointer_of(&LAST_PLAN)
}

/// The name of a code, or null for a number that is none.
#[unsafe(no_mangle)]
pub extern "C" fn cutile_kernels_status_name(code: i32) -> *const c_char {
    let known = Status::ALL.iter().find(|status| **status as i32 == code);
    known.map_or(std::ptr::null(), |status| status.terminated().as_ptr().cast())
}

/// The version of the interface that this library was built with.
#[unsafe(no_mangle)]
pub extern "C" fn cutile_kernels_abi_version() -> i32 {
    super::abi::ABI_VERSION
}

#[cfg(test)]
mod tests {
    use std::ffi::CStr;

    use super::*;

    fn last_error() -> String {
        // SAFETY: the pointer is to this thread's string, which lives until the next call.
        unsafe { CStr::from_ptr(cutile_kernels_last_error()) }.to_string_lossy().into_owned()
    }

    #[test]
    fn a_failure_leaves_its_code_and_message() {
        assert_eq!(guarded(|| Err(Failure::new(Status::Rank, "rank\0 2"))), 4);
        assert_eq!(last_error(), "rank  2");
        assert_eq!(guarded(|| Ok(())), 0);
    }

    #[test]
    fn a_panic_becomes_a_code() {
        assert_eq!(guarded(|| panic!("no {}", "way")), Status::Panic as i32);
        assert_eq!(last_error(), "no way");
    }

    #[test]
    fn names() {
        // SAFETY: the names are static and end with a zero.
        let name = |code| unsafe { CStr::from_ptr(cutile_kernels_status_name(code)) }.to_str().unwrap();
        assert_eq!(name(13), "NO_ENTRY");
        assert!(cutile_kernels_status_name(99).is_null());
        assert_eq!(Status::IndexOverflow.name(), "INDEX_OVERFLOW");
    }
}
