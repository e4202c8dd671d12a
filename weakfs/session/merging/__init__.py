"""Merging: branches of a session joined three-way, and the conflicts between them."""
