"""Retention: keeping a session or a snapshot store within budgets of bytes, age and number."""
