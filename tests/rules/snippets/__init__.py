"""Code shapes that rules must and must not flag, beside their own examples: data for test_snippets.py."""
