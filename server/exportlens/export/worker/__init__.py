"""The process that runs the user's model: standard library and torch only, started by path in the user's
interpreter.
"""
