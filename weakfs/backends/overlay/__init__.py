"""The overlay backend: a writable layer over another filesystem."""
