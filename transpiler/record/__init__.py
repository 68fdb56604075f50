"""Real launches as specializations: a command runs with launches hooked, and what it launched becomes a SPEC.toml."""
