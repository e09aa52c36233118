"""Whose memory code reads and writes: effects of statements, tensors that share memory, how they lie in it."""
