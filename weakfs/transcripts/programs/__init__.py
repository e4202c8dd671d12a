"""The tools of other programs, mapped to the equivalent tools of ours."""
