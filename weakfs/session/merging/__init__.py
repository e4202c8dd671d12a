"""Merging: branches of a session joined three-way."""
