"""What the documentation is generated from the code with, each time it is built."""
