"""`weakfs replay`: replay a session from its records, and compare the result with its file."""
