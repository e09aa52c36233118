"""EXL4xx: sizes, indices and numbers that tensor data decides."""
