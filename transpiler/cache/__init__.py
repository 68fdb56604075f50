"""What earlier batches found out, so that a second one re-checks only what changed.

Three kinds of entries, each named by a digest of everything that it depends on:

    listings/      the operators, kernels and specializations that an argument of `batch` stands for
    operators/     an operator's results; translations/ holds its files
    checks/        the result of one check: what both compilers and the judge were given

They lie in the user's cache folder, not in DIR: a proof that is not repeated must come from a run of this user, not
from files that travel with a folder (DIR is copied, committed and edited).  So DIR is compared with the digests of
what the cache knows and written again where it isn't the same.  ``transpile verify`` never looks here.
"""
