"""The calls of torch.export and what torch must be told for them: shapes, output classes, custom operators."""
