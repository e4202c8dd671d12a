"""Undo: operations that take earlier work back, and that can be taken back themselves."""
