"""Calls and contexts that the torch and mode of the user do not trace, in words that they take."""
