//! Finds the statement behind a failure that does not say where it is.
//!
//! Panics, and many errors of the compiler, carry no place in the kernel. The same failure shows
//! up exactly when the statement that causes it is compiled, so the body of the entry is cut after
//! fewer and fewer statements (by bisection, then inside the statement found) until it is known.

use syn::spanned::Spanned;
use syn::{Block, Expr, Item, ItemMod, Stmt};

use crate::facts::find_function;
use crate::program::Program;
use crate::{Failure, Request};

/// Steps from a block to a block inside it: index of the statement, then which of its blocks.
type Path = Vec<(usize, usize)>;

/// The failure with the place of the statement that causes it, or of the entry's name.
pub(crate) fn search(program: &Program, request: &Request, failure: Failure) -> Failure {
    let Some(function) = find_function(program.ast(), &request.entry) else {
        let module = program.ast().ident.span();
        return failure.at(module);
    };
    let mut place = function.sig.ident.span();
    let mut path = Path::new();
    while let Some(block) = block_at(&function.block, &path) {
        let fails = |keep: usize| fails_alike(program, request, &path, keep, &failure);
        let Some(index) = first_failing(block.stmts.len(), fails) else {
            break;
        };
        place = block.stmts[index].span();
        let Some(inner) = failing_block(program, request, &path, index, &block.stmts[index], &failure) else {
            break;
        };
        path.push((index, inner));
    }
    failure.at(place)
}

/// The smallest number of statements that fails, less one; None if none or not even all do.
fn first_failing(count: usize, fails: impl Fn(usize) -> bool) -> Option<usize> {
    if count == 0 || fails(0) || !fails(count) {
        return None;
    }
    let (mut good, mut bad) = (0, count);
    while bad - good > 1 {
        let middle = good.midpoint(bad);
        if fails(middle) {
            bad = middle;
        } else {
            good = middle;
        }
    }
    Some(good)
}

/// The block of `statement` that the failure goes away with, when it is emptied.
fn failing_block(
    program: &Program,
    request: &Request,
    path: &Path,
    index: usize,
    statement: &Stmt,
    failure: &Failure,
) -> Option<usize> {
    (0..blocks_of(statement).len()).find(|&which| {
        let mut inner = path.clone();
        inner.push((index, which));
        !fails_alike(program, request, &inner, 0, failure)
    })
}

/// Whether the entry still fails in the same way when the block at `path` keeps only `keep` statements.
fn fails_alike(program: &Program, request: &Request, path: &Path, keep: usize, failure: &Failure) -> bool {
    let mut ast = program.ast().clone();
    let Some(block) = entry_block_mut(&mut ast, &request.entry).and_then(|block| block_at_mut(block, path)) else {
        return false;
    };
    block.stmts.truncate(keep);
    matches!(program.compile_variant(&ast, request), Err(other) if other.message == failure.message)
}

fn entry_block_mut<'a>(ast: &'a mut ItemMod, entry: &str) -> Option<&'a mut Block> {
    ast.content.as_mut()?.1.iter_mut().find_map(|item| match item {
        Item::Fn(function) if function.sig.ident == entry => Some(&mut *function.block),
        _ => None,
    })
}

fn block_at<'a>(root: &'a Block, path: &Path) -> Option<&'a Block> {
    path.iter().try_fold(root, |block, &(index, which)| blocks_of(block.stmts.get(index)?).into_iter().nth(which))
}

fn block_at_mut<'a>(root: &'a mut Block, path: &Path) -> Option<&'a mut Block> {
    path.iter()
        .try_fold(root, |block, &(index, which)| blocks_of_mut(block.stmts.get_mut(index)?).into_iter().nth(which))
}

/// The blocks directly under a statement: bodies of loops, branches, unsafe blocks.
macro_rules! blocks_under {
    ($statements:ident, $expressions:ident, $as:ident, [$($mut:tt)?]) => {
        fn $statements(statement: & $($mut)? Stmt) -> Vec<& $($mut)? Block> {
            match statement {
                Stmt::Expr(expression, _) => $expressions(expression),
                Stmt::Local(local) => local
                    .init
                    .$as()
                    .map_or_else(Vec::new, |init| $expressions(& $($mut)? init.expr)),
                _ => Vec::new(),
            }
        }

        fn $expressions(expression: & $($mut)? Expr) -> Vec<& $($mut)? Block> {
            match expression {
                Expr::ForLoop(it) => vec![& $($mut)? it.body],
                Expr::While(it) => vec![& $($mut)? it.body],
                Expr::Loop(it) => vec![& $($mut)? it.body],
                Expr::Unsafe(it) => vec![& $($mut)? it.block],
                Expr::Block(it) => vec![& $($mut)? it.block],
                Expr::If(it) => {
                    let mut blocks = vec![& $($mut)? it.then_branch];
                    if let Some((_, other)) = & $($mut)? it.else_branch {
                        blocks.extend($expressions(other));
                    }
                    blocks
                }
                _ => Vec::new(),
            }
        }
    };
}

blocks_under!(blocks_of, blocks_of_expression, as_ref, []);
blocks_under!(blocks_of_mut, blocks_of_expression_mut, as_mut, [mut]);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bisection_finds_the_first_failing_prefix() {
        for culprit in 0..5 {
            assert_eq!(first_failing(5, |keep| keep > culprit), Some(culprit));
        }
        assert_eq!(first_failing(5, |_| false), None);
        assert_eq!(first_failing(5, |_| true), None);
        assert_eq!(first_failing(0, |_| true), None);
    }

    #[test]
    fn paths_lead_into_loops_and_branches() {
        let block: Block = syn::parse_str("{ a(); for i in r { if c { x(); } else { y(); z(); } } }").unwrap();
        let inner = block_at(&block, &vec![(1, 0), (0, 1)]).unwrap();
        assert_eq!(inner.stmts.len(), 2);
        assert!(block_at(&block, &vec![(0, 0)]).is_none());
    }
}
