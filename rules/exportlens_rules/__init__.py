"""The built-in rule pack: one file per rule, grouped by folder."""
