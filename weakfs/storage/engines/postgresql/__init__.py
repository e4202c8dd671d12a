"""Storage in PostgreSQL through psycopg and its pool; needs the extra `postgresql`.

Event streams have their own tables: an append is one statement, and NOTIFY wakes waiting readers. The option `schema`
of the URL names the schema of the tables, which are created if they are missing.
"""
