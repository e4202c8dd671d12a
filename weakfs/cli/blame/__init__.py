"""`weakfs blame` and `weakfs why`: which call wrote each line of a file."""
