"""Matching of hunks to the places in a file that they refer to."""
