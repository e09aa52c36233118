"""EXL2xx: writes that tracing cannot see, and aliases behind its back."""
