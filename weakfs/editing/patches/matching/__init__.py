"""Matching hunks to the place in a file that they mean."""
