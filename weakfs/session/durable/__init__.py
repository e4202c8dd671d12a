"""Durable sessions: every change is appended to an event stream before it takes effect in memory."""
