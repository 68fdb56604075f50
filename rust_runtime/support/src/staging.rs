//! Page-locked memory for what a launch sends to the device, each piece with its place there and an event.
//!
//! A copy from page-locked memory reads it when the stream comes to it, long after the call. A [`Slot`] is therefore
//! one launch's alone until the stream has passed the kernel, which its event says; only then another launch takes it.
//! The pool grows by as many launches as are on their way at once, and shrinks never.

use std::collections::{BTreeMap, VecDeque};
use std::ffi::c_uint;
use std::sync::{Mutex, PoisonError};

use cutile::cuda_core::memory::{free_host, malloc_host, malloc_sync, memcpy_htod_async};
use cutile::cuda_core::sys::{
    CUevent, CUevent_flags_enum_CU_EVENT_DISABLE_TIMING, CUstream, CUstreamCaptureMode,
    CUstreamCaptureMode_enum_CU_STREAM_CAPTURE_MODE_RELAXED, cuEventCreate, cuEventDestroy_v2, cuEventQuery,
    cuEventRecord, cuThreadExchangeStreamCaptureMode, cudaError_enum_CUDA_ERROR_NOT_READY,
};
use cutile::cuda_core::{DriverError, IntoResult};

/// Words of the smallest slots: a page.
const SMALLEST: usize = 512;
/// How many slots are made at once.
const SLAB: usize = 16;
/// How many slots are asked whether they are free, before others are made.
const ASKED: usize = 8;

/// By device and words of a slot: the slots that no thread holds; those in use the longest come first.
static POOL: Mutex<BTreeMap<(i32, usize), VecDeque<Slot>>> = Mutex::new(BTreeMap::new());

/// Page-locked memory, and memory of the device with the same size. Dropping it leaves both to the process.
pub(super) struct Slot {
    pinned: *mut u64,
    /// The address on the device.
    pub address: u64,
    words: usize,
    device: i32,
    /// Recorded behind the last kernel that read the memory.
    event: CUevent,
}

// SAFETY: memory and handles of the driver, which are any thread's; a slot has one owner.
unsafe impl Send for Slot {}

/// What this thread asks of the driver meanwhile doesn't end the captures of other streams: asking an event and
/// allocating are allowed then only to a thread that says that it takes no part in them.
struct Relaxed(CUstreamCaptureMode);

impl Relaxed {
    fn new() -> Option<Self> {
        let mut mode = CUstreamCaptureMode_enum_CU_STREAM_CAPTURE_MODE_RELAXED;
        // SAFETY: the mode is read and written; it is this thread's alone.
        let exchanged = unsafe { cuThreadExchangeStreamCaptureMode(&raw mut mode) };
        (exchanged == 0).then_some(Self(mode))
    }
}

impl Drop for Relaxed {
    fn drop(&mut self) {
        // SAFETY: as above.
        let _ = unsafe { cuThreadExchangeStreamCaptureMode(&raw mut self.0) };
    }
}

impl Slot {
    /// A slot for this many words that nothing on the device uses. The device's primary context is current.
    pub fn take(device: i32, words: usize) -> Result<Self, DriverError> {
        let words = words.next_power_of_two().max(SMALLEST);
        let _relaxed = Relaxed::new();
        for _ in 0..ASKED {
            // The driver is asked without the lock: other threads go on.
            let first = pool(|all| all.get_mut(&(device, words)).and_then(VecDeque::pop_front));
            let Some(slot) = first else { break };
            if slot.is_free()? {
                return Ok(slot);
            }
            slot.put_last();
        }
        let mut made = slab(device, words)?;
        let slot = made.pop();
        made.into_iter().for_each(Self::put_first);
        slot.ok_or(DriverError(cudaError_enum_CUDA_ERROR_NOT_READY))
    }

    /// Whether the stream has passed the last kernel that used the slot.
    fn is_free(&self) -> Result<bool, DriverError> {
        // SAFETY: the event is ours; one that was never recorded has happened.
        match unsafe { cuEventQuery(self.event) } {
            busy if busy == cudaError_enum_CUDA_ERROR_NOT_READY => Ok(false),
            other => other.result().map(|()| true),
        }
    }

    fn put_last(self) {
        pool(|all| all.entry((self.device, self.words)).or_default().push_back(self));
    }

    fn put_first(self) {
        pool(|all| all.entry((self.device, self.words)).or_default().push_front(self));
    }

    /// The memory to fill.
    pub fn words(&mut self) -> &mut [u64] {
        // SAFETY: allocated with this size, initialized by `slab`, and read by no copy any more (`take`).
        unsafe { std::slice::from_raw_parts_mut(self.pinned, self.words) }
    }

    /// Enqueues the one copy of the first words to the device.
    ///
    /// # Safety
    ///
    /// The stream is of the slot's device and isn't captured. The slot is neither written to nor given back otherwise
    /// than by [`Slot::give_back`] with this stream.
    pub unsafe fn send(&self, words: usize, stream: CUstream) -> Result<(), DriverError> {
        let bytes = words.min(self.words) * size_of::<u64>();
        // SAFETY: both memories hold that many bytes, and stay until the stream has passed the copy.
        unsafe { memcpy_htod_async(self.address, self.pinned, bytes, stream) }
    }

    /// Lets other launches have the slot once the stream has passed what is on it now.
    ///
    /// # Safety
    ///
    /// The stream is that of [`Slot::send`], and what reads the memory on the device was enqueued on it.
    pub unsafe fn give_back(self, stream: CUstream) {
        // SAFETY: event and stream are of the same context. A slot that can't be waited for isn't used again.
        if unsafe { cuEventRecord(self.event, stream) } == 0 {
            self.put_last();
        }
    }
}

fn pool<T>(change: impl FnOnce(&mut BTreeMap<(i32, usize), VecDeque<Slot>>) -> T) -> T {
    change(&mut POOL.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Makes slots out of one allocation of each kind of memory.
fn slab(device: i32, words: usize) -> Result<Vec<Slot>, DriverError> {
    let bytes = words * size_of::<u64>();
    let mut events = Events(Vec::with_capacity(SLAB));
    for _ in 0..SLAB {
        events.0.push(event()?);
    }
    // SAFETY: the context is current; what was allocated is given back where the rest fails, before anything uses it.
    let (pinned, address) = unsafe {
        let pinned = malloc_host(SLAB * bytes)?.cast::<u64>();
        pinned.write_bytes(0, SLAB * words);
        match malloc_sync(SLAB * bytes) {
            Ok(address) => (pinned, address),
            Err(error) => {
                let _ = free_host(pinned.cast());
                return Err(error);
            }
        }
    };
    let made = std::mem::take(&mut events.0).into_iter().enumerate().map(|(index, event)| Slot {
        // SAFETY: inside of the allocation.
        pinned: unsafe { pinned.add(index * words) },
        address: address + (index * bytes) as u64,
        words,
        device,
        event,
    });
    Ok(made.collect())
}

/// Events that are given back unless slots take them.
struct Events(Vec<CUevent>);

impl Drop for Events {
    fn drop(&mut self) {
        for &event in &self.0 {
            // SAFETY: ours, and never recorded.
            let _ = unsafe { cuEventDestroy_v2(event) };
        }
    }
}

fn event() -> Result<CUevent, DriverError> {
    let mut event = std::ptr::null_mut();
    // SAFETY: the context is current; the event is written to.
    unsafe { cuEventCreate(&raw mut event, CUevent_flags_enum_CU_EVENT_DISABLE_TIMING as c_uint).result()? };
    Ok(event)
}
