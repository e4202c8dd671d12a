"""Cases about entries: their paths, directories, links, moves and attributes."""
