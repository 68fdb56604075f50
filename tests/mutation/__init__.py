"""Mutation testing of the judge: every kind of fault put into every generated kernel of a corpus."""
