"""NumPy on traced tensors as torch: single calls, the whole way of an array, and data that NumPy made before."""
