"""What a container's files differ in from its image: read, measured, and restored."""
