"""Numbers of Python that are read out of tensors, and what uses them."""
