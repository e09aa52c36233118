"""What the arms of a branch hold that a function of torch.cond may not: writes by names, numbers, loops, layers."""
