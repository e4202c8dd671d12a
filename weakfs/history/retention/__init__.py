"""Retention: keeping a session or a snapshot store within limits on size, age and number."""
