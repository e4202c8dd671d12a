"""Generators of the parts of the documentation that each build takes from the code."""
