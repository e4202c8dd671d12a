"""The life cycle of containers: they are found or created, started, watched, stopped when idle, and removed."""
