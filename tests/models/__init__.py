"""Slow and plain twins of what weakfs does fast, and makers of random trees: what several tests compare with."""
