"""Scans of host directories, with a stat cache, and the manifests that record what they found."""
