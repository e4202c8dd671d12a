"""File trees in session files: each directory once, as a difference where that is smaller."""
