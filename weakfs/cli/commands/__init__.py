"""The subcommands of `weakfs`."""
