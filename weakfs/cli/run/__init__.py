"""`weakfs run`: run the calls of a transcript."""
