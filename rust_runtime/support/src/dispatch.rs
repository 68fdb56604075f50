//! What every generated C function does: check, choose, and hand over to what launches.
//!
//! The choice is made once for all calls with the same [`signature`]; after that a launch is one look-up.

use std::sync::atomic::{AtomicU64, Ordering};

use super::abi::{Launch, RawValue, TensorDesc, flag};
use super::call::Call;
use super::choose::{Chosen, choose};
use super::plan::describe;
use super::signature::signature;
use super::status::{Failure, guarded, set_plan};
use super::table::Kernel;

/// What runs the chosen entry of a call.
pub trait Backend: Sync {
    /// Enqueues the call on its stream if a call with this signature ran before; `None` if none did.
    fn run_again(&self, call: &Call<'_>, signature: &[u64]) -> Option<Result<(), Failure>>;

    /// Compiles the entry if need be, and enqueues it on the call's stream. Remembers it under the signature.
    fn run(&self, call: &Call<'_>, chosen: Chosen, signature: Vec<u64>) -> Result<(), Failure>;
}

static LAUNCHES: AtomicU64 = AtomicU64::new(0);

/// How many launches were enqueued through this library.
#[unsafe(no_mangle)]
pub extern "C" fn cutile_kernels_launches() -> u64 {
    LAUNCHES.load(Ordering::Relaxed)
}

/// Checks the arguments, chooses the entry and runs it. Returns a [`super::Status`].
///
/// # Safety
///
/// Each pointer is null, or points to as many items as the length beside it says (`launch` to one). Texts end
/// with a zero. The arrays describe memory of the device that stays until the stream has passed the kernel, and
/// `stream` is a stream of the device's primary context. What the kernel itself asks of its arguments holds.
#[allow(clippy::too_many_arguments)]
pub unsafe fn launch(
    kernel: &'static Kernel,
    backend: &'static dyn Backend,
    arrays: *const TensorDesc,
    n_arrays: usize,
    scalars: *const RawValue,
    n_scalars: usize,
    constants: *const RawValue,
    n_constants: usize,
    launch: *const Launch,
) -> i32 {
    guarded(|| {
        // SAFETY: the caller's promise.
        let call =
            unsafe { Call::read(kernel, (arrays, n_arrays), (scalars, n_scalars), (constants, n_constants), launch)? };
        if call.launch.flags & flag::DRY_RUN != 0 {
            set_plan(&describe(&call, &choose(&call)?));
            return Ok(());
        }
        let signature = signature(&call);
        match backend.run_again(&call, &signature) {
            Some(result) => result?,
            None => backend.run(&call, choose(&call)?, signature)?,
        }
        LAUNCHES.fetch_add(1, Ordering::Relaxed);
        Ok(())
    })
}
