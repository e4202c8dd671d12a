"""Undo: taking earlier work back, as operations of the session that can be taken back themselves."""
