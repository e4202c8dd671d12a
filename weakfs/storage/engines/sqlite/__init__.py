"""Storage in one SQLite file, using the standard library: for the processes of one machine.

The file is in WAL mode. A change survives the death of the process; with `?durability=power` every change is synced and
survives a power failure as well; otherwise `flush` syncs.
"""
