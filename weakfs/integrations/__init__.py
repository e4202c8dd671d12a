"""Integrations with other projects, each in its own module with its own optional extra."""
