"""Checks and errors on tensor data: assertions of the graph, statements that only matter to eager, exceptions."""
