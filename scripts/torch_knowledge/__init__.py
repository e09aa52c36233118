"""How the data about torch is made: the surface from schemas and signatures, the rules from samples,
exports from runs.
"""
