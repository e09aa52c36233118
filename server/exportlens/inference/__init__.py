"""What the values are: lattice, interpreter, knowledge of torch, names across files, entry points."""
