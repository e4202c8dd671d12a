"""Count how often the editing engine is right, refuses, or is wrong: `python -m benchmarks.edits`.

Every example is made from a true edit of a known text, so that the right answer is known before the call. A family
of examples is a module: `whitespace`, `mutants`, `wellformed`, `partial`.
"""
