"""Tests of weakfs. A package, so that the models in `tests.models` can be imported everywhere."""
