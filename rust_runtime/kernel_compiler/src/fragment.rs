//! Pieces of Rust that come from outside: parsed, and refused unless they are statements of the kernel language.
//!
//! A fragment is data until it has passed: everything is refused that isn't named here. It may bind variables, call
//! functions of the kernel language, branch, and count in a `for` over a range; it ends in a value. Placeholders are
//! written `$0` or `$shape`.

use std::collections::HashSet;

use proc_macro2::TokenStream;
use quote::ToTokens;
use serde_json::{Value, json};
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::{BinOp, Block, Expr, GenericArgument, Lit, Member, Pat, PathArguments, Stmt, Type, UnOp};

use crate::surface::{callables, mode_modules};
use crate::{Failure, panics};

/// Longer texts are refused unread.
const MAX_BYTES: usize = 8_000;
const MAX_DEPTH: usize = 40;
const STACK_BYTES: usize = 256 << 20;
const MARK: &str = "__placeholder_";
const MACROS: [&str; 3] = ["shape", "const_shape", "const_array"];
const TYPES: [&str; 11] = [
    "Tile",
    "PointerTile",
    "Token",
    "Shape",
    "Array",
    "Partition",
    "StridedView",
    "GatherScatterView",
    "Tensor",
    "Option",
    "Latency",
];

type Checked<T> = Result<T, Failure>;

/// Parses a fragment; returns its statements as JSON. `declared` are callable names besides those of cutile.
pub fn parse_fragment(text: &str, declared: &[String]) -> Result<String, Failure> {
    if text.len() > MAX_BYTES {
        return Err(Failure::new(format!("the fragment is longer than {MAX_BYTES} bytes")));
    }
    let (text, declared) = (text.to_owned(), declared.to_vec());
    let parse = move || panics::catch(|| parse(&text, &declared));
    let thread = std::thread::Builder::new().stack_size(STACK_BYTES).spawn(parse);
    let thread = thread.map_err(|error| Failure::new(format!("no thread for the parser: {error}")))?;
    thread.join().unwrap_or_else(|_| Err(Failure::new("the parser gave up")))
}

fn parse(text: &str, declared: &[String]) -> Checked<String> {
    if text.contains(MARK) {
        return Err(Failure::new(format!("`{MARK}` is reserved")));
    }
    too_deep(text)?;
    let block: Block = syn::parse_str(&format!("{{\n{}\n}}", marked(text))).map_err(|error| {
        let mut failure = Failure::from(error);
        failure.line = failure.line.saturating_sub(1);
        failure
    })?;
    let mut checker = Checker::new(declared);
    let body = checker.block(&block, 0)?;
    if !matches!(block.stmts.last(), Some(Stmt::Expr(_, None))) {
        return Err(Failure::new("the fragment has no value: it must end in an expression without a semicolon"));
    }
    Ok(unmarked(&Value::Array(body).to_string()))
}

/// The parser recurses: brackets and prefix operators nest no deeper than a person writes.
fn too_deep(text: &str) -> Checked<()> {
    let (mut depth, mut prefixes) = (0usize, 0usize);
    for c in text.chars() {
        match c {
            '(' | '[' | '{' | '<' => depth += 1,
            ')' | ']' | '}' | '>' => depth = depth.saturating_sub(1),
            _ => {}
        }
        prefixes = if matches!(c, '-' | '!' | '*' | '&') {
            prefixes + 1
        } else if c.is_whitespace() {
            prefixes
        } else {
            0
        };
        if depth > MAX_DEPTH || prefixes > MAX_DEPTH {
            return Err(Failure::new("the fragment is nested too deeply"));
        }
    }
    Ok(())
}

/// `$name` as an identifier that the parser takes.
fn marked(text: &str) -> String {
    text.replace('$', MARK)
}

fn unmarked(text: &str) -> String {
    text.replace(MARK, "$")
}

struct Checker {
    functions: HashSet<String>,
    guarded: HashSet<String>,
    locals: HashSet<String>,
}

impl Checker {
    fn new(declared: &[String]) -> Self {
        let functions = callables().iter().map(|one| one.name.clone()).chain(declared.iter().cloned()).collect();
        let unsafe_ones = callables().iter().filter(|one| one.is_unsafe).map(|one| one.name.clone());
        // Declarations of generated modules may be unsafe too; the compiler knows which.
        let guarded = unsafe_ones.chain(declared.iter().cloned()).collect();
        Self { functions, guarded, locals: HashSet::new() }
    }

    fn block(&mut self, block: &Block, depth: usize) -> Checked<Vec<Value>> {
        block.stmts.iter().map(|stmt| self.stmt(stmt, depth)).collect()
    }

    fn stmt(&mut self, stmt: &Stmt, depth: usize) -> Checked<Value> {
        match stmt {
            Stmt::Local(local) => {
                plain(&local.attrs, "an attribute", local)?;
                let init = local.init.as_ref().ok_or_else(|| refused("a variable without a value", local))?;
                if init.diverge.is_some() {
                    return Err(refused("`let .. else`", local));
                }
                let value = self.expr(&init.expr, depth + 1)?;
                let (names, types, mutable) = self.pattern(&local.pat)?;
                Ok(json!({"let": names, "types": types, "mut": mutable, "value": value}))
            }
            Stmt::Expr(Expr::Assign(assign), Some(_)) => {
                plain(&assign.attrs, "an attribute", assign)?;
                let name = ident(&assign.left).filter(|name| self.locals.contains(name));
                let name =
                    name.ok_or_else(|| refused("an assignment to something else than an own variable", assign))?;
                Ok(json!({"assign": name, "value": self.expr(&assign.right, depth + 1)?}))
            }
            Stmt::Expr(Expr::ForLoop(each), _) => self.for_loop(each, depth),
            Stmt::Expr(e, Some(_)) => Ok(json!({"do": self.expr(e, depth + 1)?})),
            Stmt::Expr(e, None) => Ok(json!({"tail": self.expr(e, depth + 1)?})),
            Stmt::Item(item) => Err(refused("an item (`use`, `fn`, `extern`, ..)", item)),
            Stmt::Macro(call) => Err(refused("a macro as a statement", call)),
        }
    }

    fn for_loop(&mut self, each: &syn::ExprForLoop, depth: usize) -> Checked<Value> {
        plain(&each.attrs, "an attribute", each)?;
        let Expr::Range(range) = each.expr.as_ref() else {
            return Err(refused("a loop over something else than a range", each));
        };
        let (Some(start), Some(end), syn::RangeLimits::HalfOpen(_), None) =
            (&range.start, &range.end, &range.limits, &each.label)
        else {
            return Err(refused("a loop without two bounds, `..=` or a label", each));
        };
        let (start, end) = (self.expr(start, depth + 1)?, self.expr(end, depth + 1)?);
        let Pat::Ident(name) = each.pat.as_ref() else { return Err(refused("a pattern", &each.pat)) };
        let name = self.bind(name)?;
        Ok(json!({"for": name, "from": start, "to": end, "body": self.block(&each.body, deeper(depth, each)?)?}))
    }

    /// The names that a pattern binds (null for `_`), their types, and which are mutable.
    fn pattern(&mut self, pat: &Pat) -> Checked<(Vec<Value>, Vec<String>, Vec<bool>)> {
        let Pat::Type(typed) = pat else { return Err(refused("a variable without a type", pat)) };
        plain(&typed.attrs, "an attribute", typed)?;
        let (names, types): (Vec<&Pat>, Vec<&Type>) = match (typed.pat.as_ref(), typed.ty.as_ref()) {
            (Pat::Tuple(names), Type::Tuple(types)) if names.elems.len() == types.elems.len() => {
                (names.elems.iter().collect(), types.elems.iter().collect())
            }
            (name, ty) => (vec![name], vec![ty]),
        };
        let mut out = (Vec::new(), Vec::new(), Vec::new());
        for (name, ty) in names.into_iter().zip(types) {
            self.ty(ty)?;
            out.1.push(text(ty));
            match name {
                Pat::Wild(_) => {
                    out.0.push(Value::Null);
                    out.2.push(false);
                }
                Pat::Ident(name) => {
                    out.0.push(Value::String(self.bind(name)?));
                    out.2.push(name.mutability.is_some());
                }
                other => return Err(refused("a pattern", other)),
            }
        }
        Ok(out)
    }

    fn bind(&mut self, name: &syn::PatIdent) -> Checked<String> {
        if name.by_ref.is_some() || name.subpat.is_some() || !name.attrs.is_empty() {
            return Err(refused("a pattern", name));
        }
        let text = name.ident.to_string();
        if self.functions.contains(&text) || text.starts_with(MARK) || !self.locals.insert(text.clone()) {
            return Err(refused("a variable with the name of something else, or bound twice", name));
        }
        Ok(text)
    }

    fn expr(&mut self, e: &Expr, depth: usize) -> Checked<Value> {
        let depth = deeper(depth, e)?;
        match e {
            Expr::Paren(inner) => {
                plain(&inner.attrs, "an attribute", e)?;
                self.expr(&inner.expr, depth)
            }
            Expr::Lit(literal) => {
                plain(&literal.attrs, "an attribute", e)?;
                match literal.lit {
                    Lit::Int(_) | Lit::Float(_) | Lit::Bool(_) => Ok(json!({"text": text(literal)})),
                    _ => Err(refused("a literal that isn't a number", e)),
                }
            }
            Expr::Path(path) => {
                plain(&path.attrs, "an attribute", e)?;
                self.value_path(path)
            }
            Expr::Call(call) => self.call(call, depth),
            Expr::Macro(call) => self.macro_call(call, depth),
            Expr::Unary(unary) => self.unary(unary, depth),
            Expr::Binary(binary) => self.binary(binary, depth),
            Expr::Reference(inner) if inner.mutability.is_none() && inner.attrs.is_empty() => {
                Ok(json!({"ref": self.expr(&inner.expr, depth)?}))
            }
            Expr::Array(list) => self.items(&list.elems, "[", depth),
            Expr::Tuple(list) => self.items(&list.elems, "(", depth),
            Expr::Field(field) => match &field.member {
                Member::Unnamed(index) => Ok(json!({"field": self.expr(&field.base, depth)?, "index": index.index})),
                Member::Named(_) => Err(refused("a named field", e)),
            },
            Expr::If(branch) => self.branch(branch, depth),
            Expr::Unsafe(inner) => self.guarded_call(inner, depth),
            _ => Err(refused("an expression that isn't part of the kernel language", e)),
        }
    }

    fn items(&mut self, items: &Punctuated<Expr, syn::Token![,]>, open: &str, depth: usize) -> Checked<Value> {
        let items: Vec<Value> = items.iter().map(|item| self.expr(item, depth)).collect::<Checked<_>>()?;
        Ok(json!({"seq": items, "open": open}))
    }

    fn unary(&mut self, unary: &syn::ExprUnary, depth: usize) -> Checked<Value> {
        plain(&unary.attrs, "an attribute", unary)?;
        match (&unary.op, unary.expr.as_ref()) {
            (UnOp::Neg(_), Expr::Lit(literal)) => Ok(json!({"text": format!("-{}", text(literal))})),
            (UnOp::Neg(_), inner) => Ok(json!({"neg": self.expr(inner, depth)?})),
            _ => Err(refused("this operator", unary)),
        }
    }

    fn binary(&mut self, binary: &syn::ExprBinary, depth: usize) -> Checked<Value> {
        plain(&binary.attrs, "an attribute", binary)?;
        let known = matches!(
            binary.op,
            BinOp::Add(_)
                | BinOp::Sub(_)
                | BinOp::Mul(_)
                | BinOp::Div(_)
                | BinOp::Rem(_)
                | BinOp::BitAnd(_)
                | BinOp::BitOr(_)
                | BinOp::BitXor(_)
                | BinOp::Shl(_)
                | BinOp::Shr(_)
        );
        if !known {
            return Err(refused("this operator", binary));
        }
        let (left, right) = (self.expr(&binary.left, depth)?, self.expr(&binary.right, depth)?);
        Ok(json!({"op": text(&binary.op), "left": left, "right": right}))
    }

    fn call(&mut self, call: &syn::ExprCall, depth: usize) -> Checked<Value> {
        plain(&call.attrs, "an attribute", call)?;
        let Expr::Path(path) = call.func.as_ref() else {
            return Err(refused("a call of something else than a function", call));
        };
        let [segment] = path.path.segments.iter().collect::<Vec<_>>()[..] else {
            return Err(refused("a path outside of the kernel language", call));
        };
        let name = segment.ident.to_string();
        if path.qself.is_some()
            || path.path.leading_colon.is_some()
            || !(name == "Some" || self.functions.contains(&name))
        {
            return Err(refused("a function that isn't part of the kernel language", call));
        }
        self.generics(&segment.arguments)?;
        let args: Vec<Value> = call.args.iter().map(|a| self.expr(a, depth)).collect::<Checked<_>>()?;
        Ok(json!({"call": text(path), "args": args}))
    }

    /// `unsafe { f(..) }` where the function asks for it, and nothing else in the braces.
    fn guarded_call(&mut self, inner: &syn::ExprUnsafe, depth: usize) -> Checked<Value> {
        plain(&inner.attrs, "an attribute", inner)?;
        let [Stmt::Expr(call @ Expr::Call(found), None)] = &inner.block.stmts[..] else {
            return Err(refused("`unsafe` around something else than one call", inner));
        };
        if !ident(&found.func).or_else(|| last(&found.func)).is_some_and(|name| self.guarded.contains(&name)) {
            return Err(refused("`unsafe` around a function that isn't", inner));
        }
        Ok(json!({"unsafe": self.expr(call, depth)?}))
    }

    fn branch(&mut self, branch: &syn::ExprIf, depth: usize) -> Checked<Value> {
        plain(&branch.attrs, "an attribute", branch)?;
        let cond = self.expr(&branch.cond, depth)?;
        let then = self.block(&branch.then_branch, depth)?;
        let other = match &branch.else_branch {
            None => Vec::new(),
            Some((_, e)) => match e.as_ref() {
                Expr::Block(block) if block.label.is_none() && block.attrs.is_empty() => {
                    self.block(&block.block, depth)?
                }
                other => vec![json!({"tail": self.expr(other, depth)?})],
            },
        };
        Ok(json!({"if": cond, "then": then, "else": other}))
    }

    fn macro_call(&mut self, call: &syn::ExprMacro, depth: usize) -> Checked<Value> {
        plain(&call.attrs, "an attribute", call)?;
        let name = call.mac.path.get_ident().map(ToString::to_string).unwrap_or_default();
        if !MACROS.contains(&name.as_str()) {
            return Err(refused("a macro that isn't part of the kernel language", call));
        }
        let parser = Punctuated::<Expr, syn::Token![,]>::parse_terminated;
        let items = call.mac.parse_body_with(parser).map_err(Failure::from)?;
        self.items(&items, &format!("{name}!["), depth)
    }

    /// A path as a value: a variable, a placeholder, a generic, a mode (`ftz::Enabled`), `f32::ZERO`, `None`.
    fn value_path(&mut self, path: &syn::ExprPath) -> Checked<Value> {
        let segments: Vec<_> = path.path.segments.iter().collect();
        let names: Vec<String> = segments.iter().map(|s| s.ident.to_string()).collect();
        let known = path.qself.is_none()
            && path.path.leading_colon.is_none()
            && match &names[..] {
                [one] => {
                    let marker = one == "None" || one == "Latency";
                    self.locals.contains(one) || one.starts_with(MARK) || marker || is_generic(one)
                }
                [module, _] if mode_modules().contains(module) => true,
                [element, one] => {
                    is_upper(one) && (is_scalar(element) || is_generic(element) || element.starts_with(MARK))
                }
                _ => false,
            };
        if !known {
            return Err(refused("a path outside of the kernel language", path));
        }
        for segment in segments {
            self.generics(&segment.arguments)?;
        }
        Ok(json!({"text": text(path)}))
    }

    fn generics(&mut self, arguments: &PathArguments) -> Checked<()> {
        match arguments {
            PathArguments::None => Ok(()),
            PathArguments::Parenthesized(found) => Err(refused("a function type", found)),
            PathArguments::AngleBracketed(found) => found.args.iter().try_for_each(|one| match one {
                GenericArgument::Type(ty) => self.ty(ty),
                GenericArgument::Const(e) => constant(e),
                other => Err(refused("a generic argument", other)),
            }),
        }
    }

    fn ty(&mut self, ty: &Type) -> Checked<()> {
        match ty {
            Type::Infer(_) => Ok(()),
            Type::Tuple(items) => items.elems.iter().try_for_each(|one| self.ty(one)),
            Type::Array(list) => self.ty(&list.elem).and_then(|()| constant(&list.len)),
            Type::Reference(to) if to.mutability.is_none() => self.ty(&to.elem),
            Type::Ptr(to) => self.ty(&to.elem),
            Type::Path(path) => {
                let segments: Vec<_> = path.path.segments.iter().collect();
                let names: Vec<String> = segments.iter().map(|s| s.ident.to_string()).collect();
                let known = match &names[..] {
                    [one] => {
                        TYPES.contains(&one.as_str()) || is_scalar(one) || is_generic(one) || one.starts_with(MARK)
                    }
                    [module, _] => mode_modules().contains(module),
                    _ => false,
                };
                if !known || path.qself.is_some() || path.path.leading_colon.is_some() {
                    return Err(refused("a type outside of the kernel language", ty));
                }
                segments.iter().try_for_each(|one| self.generics(&one.arguments))
            }
            _ => Err(refused("a type outside of the kernel language", ty)),
        }
    }
}

/// A constant in a type: a number, a generic, a placeholder, or `{ [M, 1] }`.
fn constant(e: &Expr) -> Checked<()> {
    match e {
        Expr::Lit(literal) if matches!(literal.lit, Lit::Int(_) | Lit::Bool(_)) => Ok(()),
        Expr::Unary(inner) if matches!(inner.op, UnOp::Neg(_)) => constant(&inner.expr),
        Expr::Path(_) if ident(e).is_some_and(|name| is_generic(&name) || name.starts_with(MARK)) => Ok(()),
        Expr::Array(list) => list.elems.iter().try_for_each(constant),
        Expr::Block(block) => match &block.block.stmts[..] {
            [Stmt::Expr(one, None)] if block.label.is_none() && block.attrs.is_empty() => constant(one),
            _ => Err(refused("a block in a type", e)),
        },
        _ => Err(refused("a constant in a type", e)),
    }
}

fn deeper<T: Spanned>(depth: usize, at: &T) -> Checked<usize> {
    if depth >= MAX_DEPTH { Err(refused("this much nesting", at)) } else { Ok(depth + 1) }
}

fn plain<T: Spanned>(attributes: &[syn::Attribute], what: &str, at: &T) -> Checked<()> {
    if attributes.is_empty() { Ok(()) } else { Err(refused(what, at)) }
}

fn refused<T: Spanned>(what: &str, at: &T) -> Failure {
    let mut failure = Failure::new(format!("refused: {what}")).at(at.span());
    failure.line = failure.line.saturating_sub(1);
    failure
}

fn ident(e: &Expr) -> Option<String> {
    if let Expr::Path(path) = e { path.path.get_ident().map(ToString::to_string) } else { None }
}

/// The name of a function with generics.
fn last(e: &Expr) -> Option<String> {
    if let Expr::Path(path) = e
        && path.path.segments.len() == 1
    {
        path.path.segments.last().map(|s| s.ident.to_string())
    } else {
        None
    }
}

/// Generics of entries and functions are upper case: E, BLOCK_M, D0.
fn is_generic(name: &str) -> bool {
    is_upper(name)
}

fn is_upper(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_uppercase())
        && name.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
}

fn is_scalar(name: &str) -> bool {
    let digits = name.trim_start_matches(['i', 'u', 'f', 'b', 't']);
    name == "bool" || (name.len() > digits.len() && digits.starts_with(|c: char| c.is_ascii_digit()))
}

/// Tokens as text, laid out as Rust is.
fn text<T: ToTokens>(node: &T) -> String {
    let tokens: TokenStream = node.to_token_stream();
    let mut out = tokens.to_string();
    for (from, to) in [
        (" :: ", "::"),
        (":: ", "::"),
        (" < ", "<"),
        ("< ", "<"),
        (" <", "<"),
        (" >", ">"),
        (" ,", ","),
        (" ! ", "!"),
        ("* mut ", "*mut "),
        ("* const ", "*const "),
        ("& ", "&"),
        (" ;", ";"),
    ] {
        out = out.replace(from, to);
    }
    out.replace("{[", "{ [")
        .replace("]}", "] }")
        .replace("[ ", "[")
        .replace(" ]", "]")
        .replace("( ", "(")
        .replace(" )", ")")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<String, String> {
        parse_fragment(text, &["const_f32".to_owned()]).map_err(|failure| failure.message)
    }

    #[test]
    fn the_kernel_language_passes() {
        for text in [
            "exp2($0, ftz::Disabled)",
            "$0 + $1 * 2.0",
            "let x: Tile<f32, { [BLOCK, 1] }> = reshape($0, shape![BLOCK, 1]); broadcast(x, $shape)",
            "let mut acc: $type = $0; for i in 0..4 { acc = acc + $1; } acc",
            "let (a, _): (Tile<$element0, { [BLOCK] }>, Token) = ($0, $1); a",
            "unsafe { assume_div_by::<_, 16>($0) }",
            "if $0 { $1 } else { $2 }",
            "[$0, $1].0",
            "const_f32(-1.5)",
            "Some($0)",
            "None::<scope::TileBlock>",
            "Latency::<0>",
            "let x: Tile<$element0, { [$dim0_0, 1] }> = reshape($0, shape![$dim0_0, 1]); x",
        ] {
            assert!(parsed(text).is_ok(), "{text}: {:?}", parsed(text));
        }
    }

    #[test]
    fn everything_else_is_refused() {
        for text in [
            "use std::fs; $0",
            "extern \"C\" { fn system(c: *const i8) -> i32; } $0",
            "std::process::exit(1)",
            "::std::process::exit(1)",
            "unsafe { core::arch::asm!(\"nop\") }",
            "asm!(\"nop\")",
            "println!(\"{}\", 1)",
            "include_str!(\"/etc/passwd\")",
            "env!(\"HOME\")",
            "shape![include!(\"x\")]",
            "fn f() {} $0",
            "const X: i32 = 1; $0",
            "#[cfg(all())] let x: i32 = 1; $0",
            "loop {}",
            "while true {} $0",
            "for i in 0.. { } $0",
            "for i in 0..=4 { } $0",
            "for i in some_iterator { } $0",
            "(|x| x)($0)",
            "return $0",
            "$0.await",
            "$0?",
            "$0.method()",
            "match $0 { _ => $1 }",
            "unsafe { exp2($0, ftz::Disabled) }",
            "unsafe { let x: i32 = 1; x }",
            "*$0",
            "&mut $0",
            "\"text\"",
            "x",
            "let exp2: i32 = 1; exp2",
            "let x: std::fs::File = $0; x",
            "let x: [i32; { loop {} }] = $0; x",
            "let x: Tile<f32, { std::process::exit(1) }> = $0; x",
            "$0 }; fn main() { $1",
            "$0;",
            "",
            "__placeholder_0",
            "a::b::c",
            "std::ZERO",
        ] {
            assert!(parsed(text).is_err(), "{text}: {:?}", parsed(text));
        }
    }

    #[test]
    fn size_and_depth_are_bounded() {
        assert!(parsed(&"(".repeat(5_000)).is_err());
        assert!(parsed(&"-".repeat(5_000)).is_err());
        assert!(parsed(&format!("{}1", "1 + ".repeat(1_900))).is_err());
        assert!(parsed(&format!("{}1", "if 1 { 1 } else ".repeat(400))).is_err());
        assert!(parsed(&" ".repeat(MAX_BYTES + 1)).is_err());
    }

    #[test]
    fn errors_point_into_the_fragment() {
        let failure = parse_fragment("$0 +\n  std::process::exit(1)", &[]).unwrap_err();
        assert_eq!(failure.line, 2);
    }
}
