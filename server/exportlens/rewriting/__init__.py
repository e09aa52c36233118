"""How code changes: liveness, branches to torch.cond, loops, asserts, wrappers, imports."""
