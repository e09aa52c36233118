"""EXL1xx: decisions of Python that hang on tensor data."""
