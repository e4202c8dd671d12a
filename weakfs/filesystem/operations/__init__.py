"""The operations that every filesystem derives from its primitives."""
