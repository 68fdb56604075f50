//! A parsed module and its compilation.

use std::collections::HashSet;
use std::sync::{LazyLock, Mutex, PoisonError};

use cutile as _; // links the modules that kernels use into the registry
use cutile_compiler::ast::{Module, SpanBase};
use cutile_compiler::compiler::{CUDATileFunctionCompiler, CUDATileModules};
use cutile_compiler::cuda_tile_runtime_utils::serialize_tile_ir_bytecode_for_version;
use cutile_compiler::error::JITError;
use cutile_compiler::specialization::{DivHint, SpecializationBits};
use cutile_ir::bytecode::BytecodeVersion;
use cutile_ir::capabilities::TargetCapabilities;
use syn::{Item, ItemMod};

use crate::{Failure, Form, Request, Source, facts, locate, panics};

/// What the pinned tools read; asking the toolkit, as a launch does, would give the same.
const BYTECODE_VERSION: BytecodeVersion = BytecodeVersion::V13_5;

/// The parsed module. Its spans are only valid on the thread that made it.
pub(crate) struct Program {
    name: &'static str,
    file: String,
    ast: ItemMod,
    modules: Option<CUDATileModules>,
}

impl Program {
    /// Parses the text, finds the module and loads what it uses.
    pub(crate) fn parse(source: &Source) -> Result<Self, Failure> {
        let file = syn::parse_file(&source.text)?;
        let ast = find_module(file.items, &source.module)
            .ok_or_else(|| Failure::new(format!("the text has no module `{}`", source.module)))?;
        let mut program = Self { name: intern(&source.module), file: source.file.clone(), ast, modules: None };
        let loaded = panics::catch(|| program.load(&program.ast));
        program.modules = Some(loaded.map_err(|failure| program.place_at_module(failure))?);
        Ok(program)
    }

    /// The module's syntax tree.
    pub(crate) fn ast(&self) -> &ItemMod {
        &self.ast
    }

    /// Compiles one request. A failure that says no place is searched for in the entry's body.
    pub(crate) fn compile(&mut self, request: &Request) -> Result<Vec<u8>, Failure> {
        let modules = match self.modules.take() {
            Some(modules) => modules,
            None => panics::catch(|| self.load(&self.ast))?,
        };
        let mut survived = false;
        let result = panics::catch(|| {
            let result = self.compile_with(&modules, &self.ast, request);
            survived = true;
            result
        });
        if survived {
            self.modules = Some(modules);
        }
        result.map_err(|failure| if failure.is_located() { failure } else { locate::search(self, request, failure) })
    }

    /// Compiles a changed copy of the module, as [`locate`] does.
    pub(crate) fn compile_variant(&self, ast: &ItemMod, request: &Request) -> Result<Vec<u8>, Failure> {
        panics::catch(|| self.compile_with(&self.load(ast)?, ast, request))
    }

    fn load(&self, ast: &ItemMod) -> Result<CUDATileModules, Failure> {
        let base = SpanBase::new(self.file.clone(), 1, 0);
        let module = Module::with_span_base(self.name, ast.clone(), base);
        CUDATileModules::from_kernel(module).map_err(|error| self.failure(error))
    }

    fn compile_with(&self, modules: &CUDATileModules, ast: &ItemMod, request: &Request) -> Result<Vec<u8>, Failure> {
        let strides: Vec<_> = request.strides.iter().map(|(n, s)| (n.as_str(), s.as_slice())).collect();
        let bits: Vec<(&str, SpecializationBits)> =
            request.facts.iter().map(|(name, known)| (name.as_str(), facts::bits(ast, request, name, known))).collect();
        let specs: Vec<_> = bits.iter().map(|(name, bits)| (*name, bits)).collect();
        let hints: Vec<(&str, DivHint)> =
            request.scalar_divisors.iter().map(|(name, divisor)| (name.as_str(), facts::hint(*divisor))).collect();
        let hints: Vec<_> = hints.iter().map(|(name, hint)| (*name, hint)).collect();
        let compiler = CUDATileFunctionCompiler::new(
            modules,
            self.name,
            &request.entry,
            &request.generics,
            &strides,
            &specs,
            &hints,
            request.grid,
            request.target.clone(),
            &request.options,
        )
        .map_err(|error| self.failure(error))?;
        self.lower(compiler, request).map_err(|error| self.failure(error))
    }

    fn lower(&self, compiler: CUDATileFunctionCompiler<'_>, request: &Request) -> Result<Vec<u8>, JITError> {
        let target = TargetCapabilities::new(BYTECODE_VERSION, request.target.clone());
        let module = compiler.with_target_capabilities(target)?.compile()?;
        match request.form {
            Form::Text => Ok(module.to_mlir_text().into_bytes()),
            Form::Bytecode => {
                let (bytes, _) = serialize_tile_ir_bytecode_for_version(&module, BYTECODE_VERSION)?;
                Ok(bytes)
            }
        }
    }

    fn failure(&self, error: JITError) -> Failure {
        Failure::from_jit(error, &self.file)
    }

    fn place_at_module(&self, failure: Failure) -> Failure {
        if failure.is_located() { failure } else { failure.at(self.ast.ident.span()) }
    }
}

/// Finds `mod name { .. }`, also inside other modules.
fn find_module(items: Vec<Item>, name: &str) -> Option<ItemMod> {
    items.into_iter().find_map(|item| match item {
        Item::Mod(module) if module.ident == name => Some(module),
        Item::Mod(module) => find_module(module.content?.1, name),
        _ => None,
    })
}

/// The compiler wants module names that live as long as the program: each name is leaked once.
fn intern(name: &str) -> &'static str {
    static NAMES: LazyLock<Mutex<HashSet<&'static str>>> = LazyLock::new(Mutex::default);
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = names.get(name) {
        return known;
    }
    let kept: &'static str = Box::leak(name.to_owned().into_boxed_str());
    names.insert(kept);
    kept
}
