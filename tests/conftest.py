"""What holds for all tests: hypothesis tries the same examples each time, and does not spend minutes explaining."""

from __future__ import annotations

from hypothesis import Phase, settings

settings.register_profile(
    "same_each_time",
    derandomize=True,
    deadline=None,
    print_blob=True,
    phases=(Phase.explicit, Phase.generate, Phase.target, Phase.shrink),
)
settings.load_profile("same_each_time")
