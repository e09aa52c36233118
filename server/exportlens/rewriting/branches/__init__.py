"""Branches on tensor data as torch.cond or torch.where: their text, their outputs, what is chosen by them."""
