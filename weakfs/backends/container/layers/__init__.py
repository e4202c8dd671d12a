"""Layers: the differences between a container's files and its image, read, measured and restored."""
