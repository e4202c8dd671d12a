"""`weakfs log`: one row for each call, or for each record."""
