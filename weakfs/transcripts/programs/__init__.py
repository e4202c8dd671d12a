"""The tools of other programs, and which of ours performs each recorded call."""
