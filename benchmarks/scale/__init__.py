"""Many sessions on one storage: worker processes that hand them on and are killed at random, and a check at the end."""
