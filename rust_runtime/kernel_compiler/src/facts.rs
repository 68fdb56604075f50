//! Facts as the compiler takes them.
//!
//! The compiler looks divisors up by the position among the *dynamic* axes of a parameter, not by
//! the axis. [`bits`] therefore drops the items of static axes, so that the callers of this crate
//! can state facts per axis.

use cutile_compiler::specialization::{DivHint, SpecializationBits};
use syn::{Expr, FnArg, GenericArgument, GenericParam, Item, ItemFn, ItemMod, Lit, Pat, PathArguments, Type, UnOp};

use crate::{Request, TensorFacts};

/// A divisor that the compiler states as it is given, without a ceiling of its own.
pub(crate) fn hint(divisor: i32) -> DivHint {
    DivHint { divisor, max: divisor.max(1) }
}

/// The facts of parameter `name` of the requested entry.
pub(crate) fn bits(ast: &ItemMod, request: &Request, name: &str, known: &TensorFacts) -> SpecializationBits {
    let strides = request.strides.iter().find(|(param, _)| param == name);
    let static_strides: Option<Vec<bool>> = strides.map(|(_, values)| values.iter().map(|&s| s != -1).collect());
    let static_extents = static_extents(ast, request, name);
    let shape_div = dynamic_only(&known.shape_div, static_extents.as_deref());
    let stride_div = dynamic_only(&known.stride_div, static_strides.as_deref());
    SpecializationBits {
        // Neither of these two is read by the compiler; they are part of a launch's cache key only.
        stride_one: vec![false; known.stride_div.len()],
        elements_disjoint: true,
        shape_div,
        stride_div,
        base_ptr_div: hint(known.base_ptr_div),
    }
}

fn dynamic_only(divisors: &[i32], is_static: Option<&[bool]>) -> Vec<DivHint> {
    let is_static = is_static.unwrap_or_default();
    let dynamic = |axis: usize| !is_static.get(axis).copied().unwrap_or(false);
    let kept = divisors.iter().enumerate().filter(|(axis, _)| dynamic(*axis));
    kept.map(|(_, &divisor)| hint(divisor)).collect()
}

/// The function called `name`.
pub(crate) fn find_function<'a>(ast: &'a ItemMod, name: &str) -> Option<&'a ItemFn> {
    ast.content.as_ref()?.1.iter().find_map(|item| match item {
        Item::Fn(function) if function.sig.ident == name => Some(function),
        _ => None,
    })
}

/// Which extents of `&Tensor<E, { [..] }>` are static; None where the type does not say it plainly.
/// The extents of a `&mut Tensor` are the tile's; the array's own are all dynamic.
fn static_extents(ast: &ItemMod, request: &Request, name: &str) -> Option<Vec<bool>> {
    let function = find_function(ast, &request.entry)?;
    let Type::Reference(reference) = parameter_type(function, name)? else {
        return None;
    };
    if reference.mutability.is_some() {
        return None;
    }
    let extents = extents_of(&reference.elem)?;
    Some(extents.iter().map(|extent| !is_dynamic(extent, function, &request.generics)).collect())
}

fn parameter_type<'a>(function: &'a ItemFn, name: &str) -> Option<&'a Type> {
    function.sig.inputs.iter().find_map(|argument| match argument {
        FnArg::Typed(typed) => match &*typed.pat {
            Pat::Ident(pattern) if pattern.ident == name => Some(&*typed.ty),
            _ => None,
        },
        FnArg::Receiver(_) => None,
    })
}

fn extents_of(ty: &Type) -> Option<Vec<Expr>> {
    let Type::Path(path) = ty else { return None };
    let PathArguments::AngleBracketed(arguments) = &path.path.segments.last()?.arguments else {
        return None;
    };
    arguments.args.iter().find_map(|argument| match argument {
        GenericArgument::Const(Expr::Block(block)) => match block.block.stmts.as_slice() {
            [syn::Stmt::Expr(Expr::Array(array), None)] => Some(array.elems.iter().cloned().collect()),
            _ => None,
        },
        _ => None,
    })
}

/// Whether an extent is -1: written so, or a const generic that is given as -1.
fn is_dynamic(extent: &Expr, function: &ItemFn, generics: &[String]) -> bool {
    match extent {
        Expr::Unary(unary) if matches!(unary.op, UnOp::Neg(_)) => is_one(&unary.expr),
        Expr::Path(path) => {
            let position = function.sig.generics.params.iter().position(|parameter| match parameter {
                GenericParam::Const(constant) => path.path.is_ident(&constant.ident),
                _ => false,
            });
            position.and_then(|index| generics.get(index)).is_some_and(|value| value == "-1")
        }
        _ => false,
    }
}

fn is_one(expression: &Expr) -> bool {
    matches!(expression, Expr::Lit(literal) if matches!(&literal.lit, Lit::Int(value) if value.base10_digits() == "1"))
}

#[cfg(test)]
mod tests {
    use cutile_compiler::hints::CompileOptions;

    use super::*;
    use crate::Form;

    const TEXT: &str = "mod m {
        fn k<E: ElementType, const N: i32, const D: i32>(
            x: &Tensor<E, { [-1, 128, -1] }>, y: &Tensor<E, { [N, D] }>, z: &mut Tensor<E, { [N, D] }>) {}
    }";

    fn request() -> Request {
        Request {
            entry: "k".into(),
            generics: vec!["f32".into(), "8".into(), "-1".into()],
            strides: vec![("x".into(), vec![-1, 1, -1])],
            facts: vec![],
            scalar_divisors: vec![],
            target: "sm_90".into(),
            options: CompileOptions::default(),
            grid: None,
            form: Form::Bytecode,
        }
    }

    fn divisors(name: &str, known: &TensorFacts) -> (Vec<i32>, Vec<i32>) {
        let ast: ItemMod = syn::parse_str(TEXT).unwrap();
        let bits = bits(&ast, &request(), name, known);
        let plain = |hints: &[DivHint]| hints.iter().map(|hint| hint.divisor).collect();
        (plain(&bits.shape_div), plain(&bits.stride_div))
    }

    #[test]
    fn items_of_static_axes_are_dropped() {
        let known = TensorFacts { shape_div: vec![2, 4, 8], stride_div: vec![16, 32, 64], base_ptr_div: 16 };
        assert_eq!(divisors("x", &known), (vec![2, 8], vec![16, 64]));
    }

    #[test]
    fn const_generics_count_as_given_and_mutable_tensors_are_dynamic() {
        let known = TensorFacts { shape_div: vec![2, 4], stride_div: vec![1, 1], base_ptr_div: 1 };
        assert_eq!(divisors("y", &known).0, vec![4]);
        assert_eq!(divisors("z", &known).0, vec![2, 4]);
    }
}
