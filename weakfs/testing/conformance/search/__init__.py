"""Cases about `glob` and `grep`."""
