"""Cases about the contents of files: text, bytes, writes and streams."""
