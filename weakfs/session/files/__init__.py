"""Session files: reading and writing them, and the sidecar directory of their blobs."""
