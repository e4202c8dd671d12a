"""Slices: their types, reducers and merge functions, the registry of types, and the events of a session."""
