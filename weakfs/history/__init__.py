"""What a session's history tells: its calls, the state around each record, and its files at any moment."""
