"""Scans of host directories, with a stat cache."""
