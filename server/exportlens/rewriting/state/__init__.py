"""What a Module keeps from call to call, as buffers: numbers, tensors that start as None, lists and windows."""
