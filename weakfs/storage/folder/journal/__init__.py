"""Journals: the records of a stream in segment files, and indexes of these."""
