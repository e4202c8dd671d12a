"""Forgetting: permanently removing a text, or everything that a file ever contained, from a session and its storage."""
