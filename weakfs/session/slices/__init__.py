"""Slices: their types, reducers and merge functions, and the registry of types."""
