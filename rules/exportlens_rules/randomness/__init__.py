"""EXL5xx: NumPy, random numbers and time."""
