"""EXL3xx: Python that the tracer does not follow."""
