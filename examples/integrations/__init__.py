"""Recorded runs of weakfs behind the interfaces of other projects."""
