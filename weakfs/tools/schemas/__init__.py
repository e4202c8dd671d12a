"""JSON Schema of parameters, and the dialects of it that providers take."""

from weakfs.tools.schemas.dialects import openapi, strict, strict_can_say
from weakfs.tools.schemas.parameters import Schema, schema_of

__all__ = ["Schema", "openapi", "schema_of", "strict", "strict_can_say"]
