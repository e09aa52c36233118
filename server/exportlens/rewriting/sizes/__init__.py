"""Sizes, slices and indices that are known only when the program runs."""
