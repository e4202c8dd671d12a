"""`weakfs run`: perform the calls of a transcript."""
