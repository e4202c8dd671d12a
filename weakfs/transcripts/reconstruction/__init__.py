"""Reconstruction of the contents of files from what a transcript shows of them."""
