"""The immutable file tree: nodes, digests, differences and merges."""
