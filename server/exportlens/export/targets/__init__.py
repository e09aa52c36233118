"""Hardware targets: one class in one file each, run in the user's interpreter, found by an entry point."""
