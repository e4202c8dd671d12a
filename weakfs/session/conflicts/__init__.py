"""Conflicts of merges: their entries, and the message that describes them."""
