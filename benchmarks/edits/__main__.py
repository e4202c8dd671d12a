"""Run the examples: `python -m benchmarks.edits --kind whitespace --count 2000 --show wrong`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from benchmarks.edits.corpus import default_corpus
from benchmarks.edits.counts import Counts
from benchmarks.edits.example import by_tool, describe, direct, judge
from benchmarks.edits.families import FAMILIES, Examples


def main() -> int:
    asked = arguments()
    corpus = default_corpus(asked.corpus)
    engine = by_tool if asked.tools else direct
    wrong = 0
    for kind in asked.kind or FAMILIES:
        examples = Examples(kind, corpus, seed=asked.seed)
        counts = Counts(kind)
        numbers = asked.number
        for example in examples.named(numbers) if numbers else examples.first(asked.count):
            answer = judge(example, engine)
            counts.add(answer)
            if asked.show == answer.verdict or numbers:
                print(describe(answer), end="\n\n")
        print(counts.table(examples.left_out))
        wrong += counts.wrong
    return 1 if wrong else 0


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.edits", description="Count right, refused and wrong answers of the editing engine."
    )
    parser.add_argument("--kind", action="append", choices=list(FAMILIES), help="only this family; may be repeated")
    parser.add_argument("--count", type=int, default=2000, help="examples of each family")
    parser.add_argument("--seed", type=int, default=0, help="other examples")
    parser.add_argument("--show", choices=("wrong", "refused", "right"), help="print these examples in full")
    parser.add_argument("--number", type=int, nargs="+", help="only the examples with these numbers, in full")
    parser.add_argument("--corpus", type=Path, nargs="+", default=[], help="directories with further source files")
    parser.add_argument("--tools", action="store_true", help="call the tools rather than the functions; slower")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
