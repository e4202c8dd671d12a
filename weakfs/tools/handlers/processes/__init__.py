"""The tools for commands that keep running after the call that started them."""
