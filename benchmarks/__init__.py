"""How fast `check` is, as ratios to other tools that read the same files in the same run."""
