"""A writable layer over another filesystem."""
