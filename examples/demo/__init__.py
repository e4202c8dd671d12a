"""weakfs at work: `python -m examples.demo`, or `make demo`."""
