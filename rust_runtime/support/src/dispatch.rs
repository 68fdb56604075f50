//! What every generated C function does: check, choose, and hand over to what launches.

use super::abi::{Launch, RawValue, TensorDesc, flag};
use super::call::Call;
use super::choose::{Chosen, choose};
use super::plan::describe;
use super::status::{Failure, guarded, set_plan};
use super::table::Kernel;

/// What runs the chosen entry of a call.
pub trait Backend: Sync {
    /// Compiles the entry if need be, and enqueues it on the call's stream.
    fn run(&self, call: &Call<'_>, chosen: &Chosen) -> Result<(), Failure>;
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
        let chosen = choose(&call)?;
        if call.launch.flags & flag::DRY_RUN != 0 {
            set_plan(&describe(&call, &chosen));
            return Ok(());
        }
        backend.run(&call, &chosen)
    })
}
