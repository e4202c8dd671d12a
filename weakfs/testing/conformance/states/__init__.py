"""Cases about the whole tree: snapshots, archives, digests and long histories."""
