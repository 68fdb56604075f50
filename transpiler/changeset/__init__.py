"""A changeset for a checkout of TileGym: translated operators laid out as its own Rust ports are."""
