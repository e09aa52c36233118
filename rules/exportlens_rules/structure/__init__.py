"""EXL6xx: modules, what they hold, take and return."""
