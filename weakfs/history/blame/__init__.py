"""Blame: the record and the call that wrote each line of a file."""
