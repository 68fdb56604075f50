"""The rule-coverage report: what translates, by which rules, what is missing, and what the proofs rest on."""
