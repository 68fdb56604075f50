"""Random kernels: well-typed cuTile Python drawn from the rule table, translated, compiled, and judged."""
