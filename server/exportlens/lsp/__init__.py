"""The language server: pygls, one small file for each feature; no analysis of its own."""
