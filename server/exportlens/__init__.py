"""ExportLens: what stops `torch.export`, where, and how to mend it."""

__version__ = "0.1.0"
