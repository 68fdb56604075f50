"""Views, loads and stores, pointers and tokens: always the raw forms with explicit tokens."""

from __future__ import annotations

from transpiler.select.forms import form

ROWS = [
    form("make_token", "new_token_unordered()", nest=False),
    form("join_tokens", "join_tokens(&$all)", nest=False),
    form(
        "view",
        "unsafe { make_partition_view($tensor, $tile, $padding, $dim_map, get_tensor_token($tensor)) }",
        nest=False,
        view="partition",
    ),
    form("view", "unsafe { make_strided_view($tensor, $tile, $padding) }", nest=False, view="strided"),
    form("view", "unsafe { make_gather_scatter_view($tensor, $tile, $padding) }", nest=False, view="gather"),
    # Of an axis whose size is baked in cutile would know the number of tiles, and bound the loop over them.
    form("num_tiles", "unbounded(scalar_to_tile(num_tiles(&$0, $axis)))", nest=False),
    form(
        "load_view",
        "unsafe { load_view_raw(&$0, $index, $token, $ordering, $scope, $tma, $latency, $inbounds, $shape) }",
        nest=False,
    ),
    form(
        "store_view",
        "unsafe { store_view_raw(&$0, $value, $index, Some($token), $ordering, $scope, $tma, $latency, $inbounds) }",
        nest=False,
    ),
    form("int_to_ptr", "int_to_ptr($0)", nest=False),
    form("base", "get_tensor_base($tensor)", nest=False),
    form("offset", "addptr_tile($0, $1)", nest=False),
    form(
        "load_ptr",
        "unsafe { load_ptr_padded($0, $ordering, $no_scope, $mask, $padding, Some($token), Latency::<$cycles>) }",
        nest=False,
    ),
    form(
        "store_ptr",
        "unsafe { store_ptr_tko($0, $value, $ordering, $no_scope, $mask, Some($token), Latency::<$cycles>) }",
        nest=False,
    ),
]
