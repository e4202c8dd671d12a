"""The click declarations of the commands: names, options and help texts."""
