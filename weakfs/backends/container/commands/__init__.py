"""Commands in a container: a supervisor inside it starts them, and this process watches over them."""
