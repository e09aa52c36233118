"""EXL7xx: misuse of torch.cond, while_loop, map, scan and custom operators."""
