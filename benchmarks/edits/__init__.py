"""Count how often the editing engine is right, refuses, or is wrong: `python -m benchmarks.edits`.

Every example is made from a true edit of a known text, so the right answer is known before the call. Each family of
examples is a module: `whitespace`, `mutants`, `wellformed`, `partial`.
"""
