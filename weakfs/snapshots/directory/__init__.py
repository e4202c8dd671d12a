"""Host directories, accessed through open descriptors so that no symbolic link is followed."""
