"""`weakfs blame` and `weakfs why`: which call put in each line of a file."""
