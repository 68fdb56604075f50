"""Entries of corpus/tilegym/own, one file a family of operators; tools/own_manifests.py writes them."""
