"""What the text says: documents, chunks, positions, suppressions, notebooks."""
