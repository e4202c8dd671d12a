"""Replay: states recomputed from records, through the reducers alone."""
