"""Storage in Redis 7 through redis-py; needs the extra `redis`.

Every change is one script, and so takes effect as a whole. What Redis acknowledges is as durable as its append-only
file: opening the storage warns if that file is not synced at every change. The names of all keys begin with the option
`namespace` of the URL.
"""
