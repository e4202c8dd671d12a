"""JSON Schema of parameters, and the dialects of it that providers accept."""

from weakfs.tools.schemas.fields import Schema
from weakfs.tools.schemas.parameters import schema_of
from weakfs.tools.schemas.provider_dialects import is_strict_compatible, openapi, strict

__all__ = ["Schema", "is_strict_compatible", "openapi", "schema_of", "strict"]
