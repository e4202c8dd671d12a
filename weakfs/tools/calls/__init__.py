"""One call of a tool: its JSON, its run, and the check that it overwrites nothing it has not seen."""
