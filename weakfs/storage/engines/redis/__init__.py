"""Storage in Redis 7, by redis-py; needs the extra `redis`.

Every change is one script, and so takes effect as a whole. What Redis acknowledges is as durable as its append-only
file: opening warns if that is not synced at every change. The option `namespace` of the URL begins the names of keys.
"""
