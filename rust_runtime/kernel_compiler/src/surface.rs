//! What kernels can call: read from the sources of cutile that are linked in, never listed by hand.

use std::collections::BTreeSet;
use std::sync::OnceLock;

use cutile as _; // links the modules that kernels use into the registry
use cutile_compiler::ast::Module;
use cutile_compiler::registry::CUTILE_MODULES;
use proc_macro2::Span;
use syn::spanned::Spanned;
use syn::{Attribute, Expr, ExprLit, Item, ItemFn, Lit, Meta, Visibility};

/// A function of the kernel language.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Callable {
    /// The function's name.
    pub name: String,
    /// Its declaration without a body, on one line.
    pub signature: String,
    /// The first line of its documentation.
    pub doc: String,
    /// The Tile IR operation that it stands for, or nothing.
    pub operation: String,
    /// Parameters that are chosen from a list: `rounding={NearestEven, Zero}`.
    pub choices: Vec<String>,
    /// Whether calls need an `unsafe` block.
    pub is_unsafe: bool,
    /// Where it is: file and line.
    pub place: (String, usize),
}

/// Every public function of the linked modules, by name and place.
pub fn callables() -> &'static [Callable] {
    static FOUND: OnceLock<Vec<Callable>> = OnceLock::new();
    FOUND.get_or_init(|| {
        let mut found: Vec<Callable> = CUTILE_MODULES
            .iter()
            .filter(|entry| entry.absolute_path.starts_with("cutile::"))
            .flat_map(|entry| functions(&(entry.build)()))
            .collect();
        found.sort_by(|a, b| (&a.name, &a.place).cmp(&(&b.name, &b.place)));
        found
    })
}

/// The modules whose names bound a mode parameter (`R: rounding::Mode`): their variants are written `rounding::Zero`.
pub(crate) fn mode_modules() -> &'static BTreeSet<String> {
    static FOUND: OnceLock<BTreeSet<String>> = OnceLock::new();
    FOUND.get_or_init(|| {
        let words = callables()
            .iter()
            .flat_map(|one| one.signature.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':')));
        words
            .filter_map(|word| word.split_once("::"))
            .filter(|(_, kind)| kind.ends_with("Mode"))
            .map(|(m, _)| m.to_owned())
            .collect()
    })
}

fn functions(module: &Module) -> Vec<Callable> {
    let Some((_, items)) = &module.ast().content else { return Vec::new() };
    items
        .iter()
        .filter_map(|item| if let Item::Fn(f) = item { Some(f) } else { None })
        .filter_map(|f| callable(module, f))
        .collect()
}

fn callable(module: &Module, function: &ItemFn) -> Option<Callable> {
    if !matches!(function.vis, Visibility::Public(_)) {
        return None;
    }
    let place = module.resolve_span(&function.sig.span());
    let file = place.file.rsplit(['/', '\\']).next().unwrap_or_default().to_owned();
    Some(Callable {
        name: function.sig.ident.to_string(),
        signature: text(function.sig.span()),
        doc: function.attrs.iter().find_map(doc).unwrap_or_default(),
        operation: function.attrs.iter().find_map(operation).unwrap_or_default(),
        choices: function.attrs.iter().flat_map(choices).collect(),
        is_unsafe: function.sig.unsafety.is_some(),
        place: (file, place.line),
    })
}

/// The source text of a span on one line. Spans are valid here: the module was parsed on this thread.
fn text(span: Span) -> String {
    let text = span.source_text().unwrap_or_default();
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    line.replace("( ", "(").replace(", )", ")").replace("< ", "<").replace(", >", ">")
}

fn doc(attribute: &Attribute) -> Option<String> {
    let Meta::NameValue(pair) = &attribute.meta else { return None };
    if !pair.path.is_ident("doc") {
        return None;
    }
    string(&pair.value).map(|line| line.trim().to_owned())
}

/// The value of `name = ".."` in `#[cuda_tile::op(..)]`.
fn operation(attribute: &Attribute) -> Option<String> {
    arguments(attribute)?.iter().find_map(|pair| {
        let Expr::Assign(pair) = pair else { return None };
        if is_ident(&pair.left, "name") { string(&pair.right) } else { None }
    })
}

/// The names that `static_params = ["rounding={Zero: ..}"]` lets a caller choose from.
fn choices(attribute: &Attribute) -> Vec<String> {
    let pairs = arguments(attribute).unwrap_or_default();
    let lists = pairs.iter().filter_map(|pair| {
        let Expr::Assign(pair) = pair else { return None };
        if !is_ident(&pair.left, "static_params") {
            return None;
        }
        if let Expr::Array(list) = pair.right.as_ref() {
            Some(list.elems.iter().filter_map(string).collect::<Vec<_>>())
        } else {
            None
        }
    });
    lists.flatten().map(|one| shortened(&one)).collect()
}

/// `rounding={Zero: rounding_mode=#..<zero>, ..}` without what the names stand for.
fn shortened(text: &str) -> String {
    let Some((name, rest)) = text.split_once("={") else { return text.to_owned() };
    let names: Vec<&str> =
        rest.trim_end_matches('}').split(',').filter_map(|item| item.split(':').next()).map(str::trim).collect();
    format!("{name}={{{}}}", names.join(", "))
}

fn arguments(attribute: &Attribute) -> Option<Vec<Expr>> {
    let Meta::List(list) = &attribute.meta else { return None };
    if list.path.segments.last()?.ident != "op" {
        return None;
    }
    let parser = syn::punctuated::Punctuated::<Expr, syn::Token![,]>::parse_terminated;
    Some(list.parse_args_with(parser).ok()?.into_iter().collect())
}

fn is_ident(e: &Expr, name: &str) -> bool {
    matches!(e, Expr::Path(path) if path.path.is_ident(name))
}

fn string(e: &Expr) -> Option<String> {
    if let Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) = e { Some(text.value()) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_come_from_the_source() {
        let exp2 = callables().iter().find(|one| one.name == "exp2").unwrap();
        assert!(exp2.signature.starts_with("fn exp2<E: ElementType"), "{}", exp2.signature);
        assert_eq!(exp2.operation, "cuda_tile.exp2");
        assert!(exp2.place.1 > 0 && exp2.place.0.ends_with(".rs"));
        let addf = callables().iter().find(|one| one.name == "addf").unwrap();
        assert!(addf.choices.iter().any(|c| c.starts_with("rounding={NearestEven")), "{:?}", addf.choices);
    }

    #[test]
    fn modes_are_found_by_their_bounds() {
        for name in ["rounding", "ftz", "nan", "ordering", "scope"] {
            assert!(mode_modules().contains(name), "{name}: {:?}", mode_modules());
        }
    }
}
