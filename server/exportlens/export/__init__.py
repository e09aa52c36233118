"""What really happens: exports in a worker process, comparison with eager, hardware targets.

This package's `worker/` and `targets/` run in the user's interpreter with the standard library and torch
alone, so
this file imports nothing.
"""
