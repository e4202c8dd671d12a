"""Slow and simple models of what weakfs does fast, and generators of random trees, used by several tests."""
