"""Generated files in which the same lines occur again and again."""

from __future__ import annotations

from random import Random

from benchmarks.edits.corpus import Source

METHODS = {
    "get": ("key", ("self.check(key)", "value = self.values.get(key)", "return value")),
    "put": ("key, value", ("self.check(key)", "self.values[key] = value", "self.count += 1", "return self")),
    "drop": ("key", ("self.check(key)", "value = self.values.get(key)", "self.values.pop(key, None)", "return value")),
    "clear": ("", ("self.values = {}", "self.count = 0", "return self")),
    "size": ("", ("return self.count",)),
}
CLASSES = ("Memory", "Disk", "Remote", "Cached", "Locked", "Logged")
SECTIONS = ("main", "staging", "testing", "backup", "archive", "mirror")


def repetitive(rng: Random) -> Source:
    """Make a file: classes with equal methods, sections, records, or test functions."""
    return rng.choice((_classes, _sections, _records, _tests))(rng)


def _classes(rng: Random) -> Source:
    lines = ['"""Stores."""', ""]
    for name in CLASSES[: rng.randint(2, 6)]:
        lines += ["", f"class {name}Store:"]
        if rng.random() < 0.5:
            lines += [f'    kind = "{name.lower()}"', ""]
        for number, method in enumerate(rng.sample(sorted(METHODS), rng.randint(2, 5))):
            parameters, body = METHODS[method]
            lines += [""] if number else []
            lines.append(f"    def {method}({', '.join(filter(None, ('self', parameters)))}):")
            if rng.random() < 0.2:
                lines += ["        with self.lock:", *(f"            {row}" for row in body)]
            else:
                lines += [f"        {row}" for row in body]
        lines.append("")
    return Source("stores.py", "python", tuple(lines[:-1]), "    ")


def _sections(rng: Random) -> Source:
    lines: list[str] = []
    for name in SECTIONS[: rng.randint(3, 6)]:
        lines += [f"[{name}]", "enabled = true", "timeout = 30"]
        lines += [f"host = {name}.example.com"] if rng.random() < 0.5 else ["host = localhost"]
        lines += ["port = 8080", "retries = 3", ""]
    return Source("settings.ini", "ini", tuple(lines[:-1]), "    ")


def _records(rng: Random) -> Source:
    lines = ["["]
    count = rng.randint(3, 8)
    for number in range(count):
        lines += ["  {", f'    "id": {number + 1},', '    "active": true,']
        lines += ['    "address": {', '      "city": "Oslo",', '      "country": "NO"', "    },", '    "tags": []']
        lines.append("  }," if number < count - 1 else "  }")
    return Source("records.json", "json", (*lines, "]"), "  ")


def _tests(rng: Random) -> Source:
    lines = ["import shop", ""]
    for number in range(rng.randint(3, 8)):
        subject = rng.choice(("basket", "order"))
        lines += ["", f"def test_{subject}_{number}():", "    basket = shop.Basket()", "    basket.add('lamp', 2)"]
        lines += [f"    assert basket.total() == {rng.choice((40, 50))}", "    assert len(basket) == 1", ""]
    return Source("test_shop.py", "python", tuple(lines[:-1]), "    ")
