"""Benchmarks of weakfs and its peers: `make bench` prepares everything and runs `python -m benchmarks`."""
