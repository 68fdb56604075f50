//! From a call to a running kernel: the only part that needs cutile and a device.

use std::collections::BTreeMap;
use std::ffi::{c_char, c_void};
use std::sync::{Arc, Once, OnceLock, PoisonError, RwLock};

use cutile::cuda_async::device_context::Validator;
use cutile::cuda_core::sys::CUstream;
use cutile::cuda_core::sys::{CUstreamCaptureStatus, cuStreamIsCapturing};
use cutile::cuda_core::{Context, Function, Stream, launch_kernel, launch_kernel_pdl};
use cutile::cutile_compiler::ast::Module;
use cutile::cutile_compiler::cuda_tile_runtime_utils::get_gpu_name;
use cutile::cutile_compiler::specialization::{DivHint, SpecializationBits};
use cutile::jit_cache::{self, FileSystemJitStore};
use cutile::tile_kernel::{
    CompileOptions, DebugInfoLevel, ExecutionContext, compile_from_context, validate_launch_checks,
    validate_programmatic_dependent_launch,
};

use super::abi::{Launch, TensorDesc, flag};
use super::call::Call;
use super::choose::{Chosen, facts_decide};
use super::dispatch::Backend;
use super::dtype::DType;
use super::facts::{ArrayFacts, array_bits, array_facts};
use super::lists;
use super::py::Value;
use super::status::{Failure, Status, cutile_kernels_last_plan, guarded, set_plan};
use super::table::Param;
use staging::Slot;

#[path = "staging.rs"]
mod staging; // a module of this file: it needs a device as well

/// The module that a kernel's entries are in, and what was compiled of it so far.
pub struct Program {
    ast: fn() -> Module,
    module: &'static str,
    source_hash: &'static str,
    /// By entry, generics, facts and hints: what the compiler was given.
    compiled: RwLock<BTreeMap<Box<[u64]>, Arc<Compiled>>>,
    /// By the signature of calls: what was chosen and compiled for them.
    remembered: RwLock<BTreeMap<Box<[u64]>, Arc<Remembered>>>,
}

/// A launch that needs nothing but the arguments.
struct Remembered {
    chosen: Chosen,
    compiled: Arc<Compiled>,
}

struct Compiled {
    function: Arc<Function>,
    validator: Arc<Validator>,
}

impl Program {
    /// The program of the module that `#[cutile::module]` generated `ast` and `source_hash` in.
    pub const fn new(ast: fn() -> Module, module: &'static str, source_hash: &'static str) -> Self {
        Self {
            ast,
            module,
            source_hash,
            compiled: RwLock::new(BTreeMap::new()),
            remembered: RwLock::new(BTreeMap::new()),
        }
    }

    fn known(&self, key: &[u64]) -> Option<Arc<Compiled>> {
        self.compiled.read().unwrap_or_else(PoisonError::into_inner).get(key).cloned()
    }

    /// Compiles what the call needs (or takes it from the cache on disk); two threads that ask for the same wait for one compilation.
    fn compile(&self, call: &Call<'_>, chosen: &Chosen, context: &Arc<Context>) -> Result<Compiled, Failure> {
        // SAFETY: the stream is the caller's, of the primary context; nothing is enqueued here. A stream that is
        // dropped asks the driver whether it is idle, which would end a capture: a clone is never dropped.
        let stream = unsafe { Stream::borrow_raw(call.launch.stream as *mut c_void, context) };
        std::mem::forget(stream.clone());
        enable_disk_cache();
        let arrays: Vec<_> = array_params(call, chosen).collect();
        let entry = chosen.entry.name;
        let (function, validator) = compile_from_context(
            &ExecutionContext::new(stream),
            self.ast,
            self.module,
            entry,
            &format!("{entry}_entry"),
            chosen.generics.iter().map(|value| value.text()).collect(),
            arrays
                .iter()
                .map(|(name, facts)| ((*name).to_owned(), facts.strides.clone()))
                .chain(tables(chosen))
                .collect(),
            arrays.iter().map(|(name, facts)| ((*name).to_owned(), specialization(facts))).collect(),
            Vec::new(),
            None,
            options(call),
            self.source_hash,
        )
        .map_err(|error| Failure::new(Status::Compile, format!("`{}`: {error}", call.kernel.name)))?;
        Ok(Compiled { function, validator })
    }

    fn function(&self, call: &Call<'_>, chosen: &Chosen, context: &Arc<Context>) -> Result<Arc<Compiled>, Failure> {
        let key = key(call, chosen);
        if let Some(known) = self.known(&key) {
            return Ok(known);
        }
        let compiled = Arc::new(self.compile(call, chosen, context)?);
        let mut all = self.compiled.write().unwrap_or_else(PoisonError::into_inner);
        Ok(all.entry(key.into_boxed_slice()).or_insert(compiled).clone())
    }
}

/// Names the folder in which machine code is kept between processes; `default` is cutile's own folder.
const DISK_CACHE: &str = "CUTILE_KERNELS_CACHE";

/// Switches cutile's cache on disk on, once, if the environment asks for it. One that can't be opened is done without.
fn enable_disk_cache() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let opened = match std::env::var_os(DISK_CACHE) {
            None => return,
            Some(folder) if folder.is_empty() => return,
            Some(folder) if folder == "default" => jit_cache::enable_default(),
            Some(folder) => FileSystemJitStore::new(folder).map(|store| jit_cache::enable(Arc::new(store))),
        };
        if let Err(error) = opened {
            eprintln!("cutile_kernels: the cache that {DISK_CACHE} names can't be used: {error}");
        }
    });
}

/// Everything that the compiled function depends on.
fn key(call: &Call<'_>, chosen: &Chosen) -> Vec<u64> {
    let Launch { device, occupancy, num_ctas, num_worker_warps, opt_level_plus_one, .. } = *call.launch;
    let small = |a: i32, b: i32| u64::from(a as u32) << 32 | u64::from(b as u32);
    let mut key = Vec::with_capacity(4 + chosen.generics.len() + chosen.entry.params.len());
    key.extend([
        std::ptr::from_ref(chosen.entry) as u64, // the kernels of a module share this program
        small(device, occupancy),
        small(num_ctas, num_worker_warps),
        opt_level_plus_one as u64,
    ]);
    key.extend(chosen.generics.iter().map(|value| value.bits()));
    key.extend(chosen.entry.params.iter().filter_map(|param| match param {
        Param::Array { index, .. } => Some(array_bits(call, *index)),
        Param::List { .. } | Param::Scalar { .. } => None,
    }));
    key
}

/// The strides of the tables that lists are passed as.
fn tables(chosen: &Chosen) -> impl Iterator<Item = (String, Vec<i32>)> {
    chosen.entry.params.iter().filter_map(|param| match param {
        Param::List { name, rank, .. } => Some(((*name).to_owned(), vec![1 + 2 * *rank as i32, 1])),
        Param::Array { .. } | Param::Scalar { .. } => None,
    })
}

fn array_params<'a>(call: &'a Call<'_>, chosen: &'a Chosen) -> impl Iterator<Item = (&'static str, ArrayFacts)> + 'a {
    chosen.entry.params.iter().filter_map(|param| array_facts(call, param, &chosen.generics))
}

/// The facts as the compiler takes them: it looks divisors up by the position among the dynamic axes.
fn specialization(facts: &ArrayFacts) -> SpecializationBits {
    let hint = |divisor: i32| DivHint { divisor, max: divisor.max(1) };
    let dynamic = |divisors: &[i32], is_dynamic: &dyn Fn(usize) -> bool| {
        divisors.iter().enumerate().filter(|(axis, _)| is_dynamic(*axis)).map(|(_, &divisor)| hint(divisor)).collect()
    };
    SpecializationBits {
        shape_div: dynamic(&facts.shape_div, &|axis| !facts.static_shape[axis]),
        stride_div: dynamic(&facts.stride_div, &|axis| facts.strides[axis] == -1),
        // Neither of these two is read by the compiler.
        stride_one: vec![false; facts.strides.len()],
        elements_disjoint: true,
        base_ptr_div: hint(facts.base_div),
    }
}

fn options(call: &Call<'_>) -> CompileOptions {
    let mut options = CompileOptions::new().debug_info(DebugInfoLevel::None);
    let given = |value: i32| Some(value).filter(|value| *value != 0);
    options.occupancy = given(call.launch.occupancy);
    options.num_cta_in_cga = given(call.launch.num_ctas);
    options.num_worker_warps_per_cta = given(call.launch.num_worker_warps);
    let level = match call.launch.opt_level_plus_one {
        0 => decorated_level(call),
        level => u8::try_from(level - 1).ok(),
    };
    level.map_or(options.clone(), |level| options.opt_level(level))
}

/// The optimisation level that the decorator asks for on this device.
fn decorated_level(call: &Call<'_>) -> Option<u8> {
    let levels = call.kernel.opt_levels;
    if levels.is_empty() {
        return None;
    }
    let target = get_gpu_name(call.launch.device as usize);
    let of = |wanted: &str| levels.iter().find(|(target, _)| *target == wanted).map(|(_, level)| *level);
    of(&target).or_else(|| of("default"))
}

/// The primary context of a device, made current on this thread.
fn primary_context(device: i32) -> Result<Arc<Context>, Failure> {
    const KEPT: usize = 64;
    static CONTEXTS: [OnceLock<Arc<Context>>; KEPT] = [const { OnceLock::new() }; KEPT];
    let ordinal = device as usize;
    let kept = CONTEXTS.get(ordinal);
    let context = match kept.and_then(OnceLock::get) {
        Some(context) => context.clone(),
        None => {
            let count = Context::device_count().map_err(|error| Failure::new(Status::NoDriver, format!("{error}")))?;
            if device >= count {
                return Err(Failure::new(Status::Device, format!("there is no device {device}; there are {count}")));
            }
            let made = Context::new(ordinal)
                .map_err(|error| Failure::new(Status::NoDriver, format!("device {device}: {error}")))?;
            kept.map_or(made.clone(), |slot| slot.get_or_init(|| made).clone())
        }
    };
    context.bind_to_thread().map_err(|error| Failure::new(Status::Launch, format!("device {device}: {error}")))?;
    Ok(context)
}

/// The values that are passed to the kernel, each in a slot of its own.
fn kernel_arguments(call: &Call<'_>, chosen: &Chosen, tables: Option<&Tables>) -> Vec<u64> {
    let mut slots = Vec::with_capacity(chosen.entry.params.len() * 9);
    let mut table = tables.map_or(0, |tables| tables.slot.address);
    for param in chosen.entry.params {
        match param {
            Param::Array { index, .. } => {
                slots.push(call.array(*index).data);
                // Checked to fit into 32 bits; the low half of a slot is what the kernel reads.
                slots.extend(call.shape(*index).iter().chain(call.strides(*index)).map(|&size| size as u64));
            }
            Param::List { index, rank, .. } => {
                let (items, width) = (call.list(*index).unwrap_or_default(), 1 + 2 * *rank);
                let rows = items.len();
                slots.push(table);
                table += (table_words(items) * size_of::<u64>()) as u64;
                slots.extend([rows, width, width, 1].map(|size| size as u64));
            }
            Param::Scalar { index, dtype, .. } => slots.push(scalar_bits(call.scalar(*index), *dtype)),
        }
    }
    slots
}

fn scalar_bits(value: Value<'_>, dtype: DType) -> u64 {
    match value {
        Value::Float(value) if dtype == DType::F32 => u64::from((value as f32).to_bits()),
        Value::Float(value) => value.to_bits(),
        other => other.integer().unwrap_or(0) as u64,
    }
}

const _: () = assert!(cfg!(target_endian = "little"), "slots are read by their low bytes");

/// Checks that the compiler moved out of the kernel; there are none as long as entries have unchecked accesses.
fn check_preconditions(call: &Call<'_>, chosen: &Chosen, compiled: &Compiled) -> Result<(), Failure> {
    let checks = &compiled.validator.launch_checks;
    if checks.is_empty() {
        return Ok(());
    }
    let shapes: Vec<Vec<i32>> = chosen
        .entry
        .params
        .iter()
        .map(|param| match param {
            Param::Array { index, .. } => call.shape(*index).iter().map(|&extent| extent as i32).collect(),
            Param::List { .. } | Param::Scalar { .. } => Vec::new(),
        })
        .collect();
    let [x, y, z] = call.launch.grid;
    validate_launch_checks(checks, &shapes, &shapes, (x, y, z))
        .map_err(|error| Failure::new(Status::Launch, format!("`{}`: {error}", call.kernel.name)))
}

// -- Lists --------------------------------------------------------------------------------------------

/// Where the table of each list begins: at a multiple of this many words.
const TABLE_ALIGNMENT: usize = 16;

/// The tables of all lists of a launch, one after the other in device memory, on their way there in one copy.
struct Tables {
    slot: Slot,
    stream: CUstream,
}

impl Tables {
    /// Makes the tables on the stream that the kernel will run on; `None` where there are no lists.
    fn new(call: &Call<'_>, chosen: &Chosen) -> Result<Option<Self>, String> {
        let lists = || lists_of(call, chosen);
        let words = lists().map(table_words).sum();
        if words == 0 {
            return Ok(None);
        }
        let stream = call.launch.stream as CUstream;
        if is_captured(stream) {
            // A graph would read the words again at each replay, when other launches have overwritten them.
            return Err("a kernel that takes a list can't be captured in a CUDA graph".to_owned());
        }
        let mut slot = Slot::take(call.launch.device, words).map_err(|error| error.to_string())?;
        let mut rest = &mut slot.words()[..words];
        for items in lists() {
            let (table, behind) = rest.split_at_mut(table_words(items));
            lists::write_table(items, table);
            rest = behind;
        }
        // SAFETY: the stream is of this device and isn't captured; the slot is given back below. If the copy can't be
        // enqueued the slot is dropped, which leaves its memory as it is.
        unsafe { slot.send(words, stream).map_err(|error| error.to_string())? };
        Ok(Some(Self { slot, stream }))
    }

    /// To be called once the kernel that reads the tables is enqueued, or can't be.
    fn enqueued(self) {
        // SAFETY: the kernel was enqueued on the stream of the copy.
        unsafe { self.slot.give_back(self.stream) };
    }
}

/// The lists that an entry reads, in the order of its parameters.
fn lists_of<'a>(call: &'a Call<'_>, chosen: &'a Chosen) -> impl Iterator<Item = &'a [TensorDesc]> {
    chosen.entry.params.iter().filter_map(|param| match param {
        Param::List { index, .. } => call.list(*index),
        Param::Array { .. } | Param::Scalar { .. } => None,
    })
}

fn table_words(items: &[TensorDesc]) -> usize {
    lists::words(items).next_multiple_of(TABLE_ALIGNMENT)
}

fn is_captured(stream: CUstream) -> bool {
    let mut status: CUstreamCaptureStatus = 0;
    // SAFETY: the stream is valid, the status is written to.
    let asked = unsafe { cuStreamIsCapturing(stream, &raw mut status) };
    asked != 0 || status != 0
}

// -- Launch -------------------------------------------------------------------------------------------

impl Program {
    /// Needs the primary context to be current.
    fn enqueue(&self, call: &Call<'_>, chosen: &Chosen, compiled: &Compiled) -> Result<(), Failure> {
        let failed = |error: String| Failure::new(Status::Launch, format!("`{}`: {error}", call.kernel.name));
        check_preconditions(call, chosen, compiled)?;
        let dependent = call.launch.flags & flag::DEPENDENT_LAUNCH != 0;
        if dependent {
            validate_programmatic_dependent_launch(call.launch.device as usize).map_err(|e| failed(e.to_string()))?;
        }
        let tables = Tables::new(call, chosen).map_err(failed)?;
        let mut slots = kernel_arguments(call, chosen, tables.as_ref());
        let mut params: Vec<*mut c_void> = slots.iter_mut().map(|slot| std::ptr::from_mut(slot).cast()).collect();
        let [x, y, z] = call.launch.grid;
        let stream = call.launch.stream as CUstream;
        // SAFETY: the function was compiled for this entry, whose parameters the slots follow in order and size
        // (an array is its address, extents and strides); the module stays loaded, `compiled` keeps it; the
        // context is current. The stream and the memory are the caller's, who keeps them until the stream has
        // passed the kernel.
        let launched = unsafe {
            let function = compiled.function.cu_function();
            let launch = if dependent { launch_kernel_pdl } else { launch_kernel };
            launch(function, (x, y, z), (1, 1, 1), 0, stream, &mut params).map_err(|error| failed(error.to_string()))
        };
        if let Some(tables) = tables {
            tables.enqueued();
        }
        launched
    }
}

impl Backend for Program {
    fn run_again(&self, call: &Call<'_>, signature: &[u64]) -> Option<Result<(), Failure>> {
        let known = self.remembered.read().unwrap_or_else(PoisonError::into_inner).get(signature).cloned()?;
        let enqueue = |_| self.enqueue(call, &known.chosen, &known.compiled);
        Some(primary_context(call.launch.device).and_then(enqueue))
    }

    fn run(&self, call: &Call<'_>, chosen: Chosen, signature: Vec<u64>) -> Result<(), Failure> {
        let context = primary_context(call.launch.device)?;
        let compiled = self.function(call, &chosen, &context)?;
        self.enqueue(call, &chosen, &compiled)?;
        if facts_decide(call) {
            let known = Arc::new(Remembered { chosen, compiled });
            self.remembered.write().unwrap_or_else(PoisonError::into_inner).insert(signature.into_boxed_slice(), known);
        }
        Ok(())
    }
}

/// The architecture of a device (`sm_90` for instance), or null, with the reason as the last error.
/// Valid until the thread's next call.
#[unsafe(no_mangle)]
pub extern "C" fn cutile_kernels_target(device: i32) -> *const c_char {
    let found = guarded(|| {
        if device < 0 {
            return Err(Failure::new(Status::Device, format!("there is no device {device}")));
        }
        primary_context(device)?;
        set_plan(&get_gpu_name(device as usize));
        Ok(())
    });
    if found == Status::Ok as i32 { cutile_kernels_last_plan() } else { std::ptr::null() }
}
