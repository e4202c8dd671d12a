"""Storage in Redis 7 through redis-py; needs the extra `redis`.

Every change is one script, and so takes effect as a whole. Acknowledged changes are as durable as the append-only file
of Redis: opening the storage warns if that file is not synced at every change. The names of all keys begin with the
option `namespace` of the URL.
"""
