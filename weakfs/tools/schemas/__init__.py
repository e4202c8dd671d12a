"""JSON Schema of parameters, and the dialects of it that providers accept."""

from weakfs.tools.schemas.dialects import openapi, strict, strict_can_say
from weakfs.tools.schemas.fields import Schema
from weakfs.tools.schemas.parameters import schema_of

__all__ = ["Schema", "openapi", "schema_of", "strict", "strict_can_say"]
