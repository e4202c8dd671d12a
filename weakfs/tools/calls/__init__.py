"""Tool calls: reading and recording their JSON, performing them, and refusing stale writes."""
