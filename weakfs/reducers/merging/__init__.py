"""Merging: two versions of the files joined three-way, by path and by line."""
