"""Where code decides on tensor data, and the condition as a tensor: predicates, comparisons, memberships."""
