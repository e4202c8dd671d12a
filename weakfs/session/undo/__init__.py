"""Undo: operations that undo earlier work, and that can be undone themselves."""
