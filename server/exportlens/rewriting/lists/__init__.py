"""Lists that tensor data fills, filters or sorts, as tensors and masks."""
