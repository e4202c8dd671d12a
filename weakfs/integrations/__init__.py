"""Interfaces of other projects over weakfs: one module each, and one optional extra each."""
