"""Forgetting: removing a text, or what a file ever held, from a session and its storage for good."""
