"""Integrations with other projects, each in a module of its own with its own optional extra."""
