"""Measure weakfs beside its peers: `make bench` prepares everything and runs `python -m benchmarks`."""
