//! The thread that owns a parsed module.

use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::{process, thread};

use crate::program::Program;
use crate::{Failure, Request, Source};

/// Enough for the deepest recursion of the compiler; only touched pages cost memory.
const STACK_BYTES: usize = 512 << 20;

struct Job {
    request: Request,
    reply: Sender<Result<Vec<u8>, Failure>>,
}

struct Worker {
    jobs: Sender<Job>,
    process: u32,
}

/// A module that was parsed once and can be compiled many times. Calls are served one by one.
pub struct Compiler {
    source: Arc<Source>,
    worker: Mutex<Worker>,
}

impl Compiler {
    /// Parses `source` and keeps it, with the modules that it uses, for [`Compiler::compile`].
    pub fn new(source: Source) -> Result<Self, Failure> {
        let source = Arc::new(source);
        let worker = Mutex::new(Worker::start(&source)?);
        Ok(Self { source, worker })
    }

    /// Compiles one specialization of one entry: bytecode, or UTF-8 text.
    pub fn compile(&self, request: Request) -> Result<Vec<u8>, Failure> {
        let (reply, result) = mpsc::channel();
        self.jobs()?.send(Job { request, reply }).map_err(|_| lost())?;
        result.recv().map_err(|_| lost())?
    }

    /// The queue of this process's worker: threads do not survive a fork, so a child starts its own.
    fn jobs(&self) -> Result<Sender<Job>, Failure> {
        let mut worker = self.worker.lock().unwrap_or_else(PoisonError::into_inner);
        if worker.process != process::id() {
            *worker = Worker::start(&self.source)?;
        }
        Ok(worker.jobs.clone())
    }
}

impl Worker {
    fn start(source: &Arc<Source>) -> Result<Self, Failure> {
        let (jobs, queue) = mpsc::channel();
        let (ready, started) = mpsc::channel();
        let source = Arc::clone(source);
        thread::Builder::new()
            .name("cutile-compiler".to_owned())
            .stack_size(STACK_BYTES)
            .spawn(move || serve(&source, &ready, &queue))
            .map_err(|error| Failure::new(format!("no thread for the compiler: {error}")))?;
        started.recv().map_err(|_| lost())??;
        Ok(Self { jobs, process: process::id() })
    }
}

fn serve(source: &Source, ready: &Sender<Result<(), Failure>>, queue: &Receiver<Job>) {
    let mut program = match Program::parse(source) {
        Ok(program) => program,
        Err(failure) => {
            // Nobody is left to tell when the receiver is gone.
            let _ = ready.send(Err(failure));
            return;
        }
    };
    let _ = ready.send(Ok(()));
    while let Ok(job) = queue.recv() {
        let _ = job.reply.send(program.compile(&job.request));
    }
}

fn lost() -> Failure {
    Failure::new("the thread of the cuTile Rust compiler ended unexpectedly")
}
