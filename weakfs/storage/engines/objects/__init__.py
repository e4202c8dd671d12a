"""Storage in object stores (S3, Google Cloud Storage and Azure) through obstore; needs the extra `s3`.

Values change by conditional writes: `If-None-Match` creates an object, and `If-Match` with its entity tag replaces it.
obstore must not repeat these by itself: if the answer to the first request was lost, the second is refused because the
first took effect, and that must not be mistaken for a change by another writer.

The path of the URL is a prefix of all keys. Its options are those of obstore, such as `endpoint`, `region` and
`access_key_id`; without them, credentials are taken from the environment, as the provider's own tools do.
"""
