"""Recorded runs of weakfs with other projects."""
