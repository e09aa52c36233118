"""Code as rewrites read and write it: texts and edits, imports, names and their liveness, calls and their callers."""
