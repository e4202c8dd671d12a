"""Alignment of a quote with the nearest place in a file: lines of both paired in order, with gaps on either side.

Lines are compared in their loose form (see `weakfs.editing.hints.similarity`). Equal lines are the anchors of an
alignment; the rarer they are in the file, the more they count. Between them, similar lines are paired. The work is
bounded, however repetitive the texts are.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from itertools import accumulate, pairwise

from weakfs.class_decorators import frozen
from weakfs.editing.hints.similarity import character_pairs, likeness

# The maximum number of lines of a quote that are aligned.
MOST_LINES = 400
# The maximum number of file lines that equal a line of the quote and are considered, rare ones first: in total, and per
# window.
MOST_HITS = 20_000
MOST_IN_WINDOW = 300
WINDOWS = 3
# An alignment is at most twice as long as the quote, plus this.
SLACK = 4
# The cost of omitting a line from an alignment.
GAP_COST = 0.05
# Lines are similar if they share half of their pairs of characters.
SIMILAR = 0.5
# The maximum number of pairs of lines compared in one gap.
MOST_COMPARISONS = 2000
# The limits for comparing lines that share a word with the quote, if no line is equal.
WORD = re.compile(r"\w{3,}")
MOST_WORDS = 12
MOST_OF_A_WORD = 100
# If no line shares even a word with the quote, all lines of a file of up to this many characters are compared with one
# line of the quote.
SMALL = 100_000
# The minimum length at which a match of the whole quote is significant.
LEAST_WHOLE = 4

# A line of the file and one of the quote, both counted from 0.
Pair = tuple[int, int]
# A range of lines of the file: the first, and the one after the last.
Span = tuple[int, int]


@frozen
class Alignment:
    """The lines of a file nearest to a quote, from `start` up to but not including `stop`, and the pairs of lines."""

    start: int
    stop: int
    pairs: tuple[Pair, ...] = ()
    score: float = 0.0


@frozen
class Aligner:
    """The lines of a file and of a quote, as they are and, in `rows` and `quoted`, in their loose form.

    Of two equally good places, the one nearer to the line `near` of the file is chosen.
    """

    lines: Sequence[str]
    rows: Sequence[str]
    old: Sequence[str]
    quoted: Sequence[str]
    near: int = 0

    def nearest(self, within: Sequence[Span] = ()) -> Alignment | None:
        """Return the nearest place, or `None` if nothing in the file is similar to the quote. O(file).

        The spans `within` are searched first, in order, and the rest of the file only if nothing similar is in them.
        """
        for spans in (within[:20], ((0, len(self.rows)),)):
            found = [place for span in spans if (place := self._in_span(span)) is not None]
            if found:
                return max(found, key=lambda place: (place.score, -abs(place.start - self.near)))
        return None

    def _in_span(self, span: Span) -> Alignment | None:
        return self._whole(span) or self._by_equal_lines(span) or self._by_similar_line(span)

    # The quote as a whole

    def _whole(self, span: Span) -> Alignment | None:
        """Find the whole quote, even if its lines are wrapped differently in the file."""
        wanted = "".join(self.quoted)
        if len(wanted) < LEAST_WHOLE or not any(map(str.isalnum, wanted)) or len(self.quoted) >= MOST_LINES:
            return None
        rows = self.rows[span[0] : span[1]]
        joined = "".join(rows)
        at = joined.find(wanted)
        if at < 0:
            return None
        ends = [*accumulate(map(len, rows))]
        best = bisect_left(ends, at + 1)
        for _ in range(MOST_OF_A_WORD):
            at = joined.find(wanted, at + 1)
            if at < 0:
                break
            line = bisect_left(ends, at + 1)
            if abs(span[0] + line - self.near) < abs(span[0] + best - self.near):
                best = line
        at = joined.find(wanted, ends[best] - len(rows[best]))
        start, stop = span[0] + best, span[0] + bisect_left(ends, at + len(wanted)) + 1
        if stop - start > 2 * len(self.quoted) + SLACK:
            return None
        # Only pairs of lines count, whatever is between them.
        inside = self._filled([], (start, stop))
        return Alignment(start, stop, tuple(inside), float(len(wanted)))

    # Equal lines

    def _by_equal_lines(self, span: Span) -> Alignment | None:
        hits, weights = self._hits(span)
        if not hits:
            return None
        chains = [self._chain(window, weights) for window in self._windows(hits, weights)]
        score, chain = max(chains, key=lambda found: (found[0], -abs(found[1][0][0] - self.near)))
        equal = [self.quoted[place] for _, place in chain if any(map(str.isalnum, self.quoted[place]))]
        said = sum(map(len, equal))
        if said < 10 and said * 3 < sum(map(len, self.quoted)) and len(equal) * 2 < len(self.quoted):
            return None
        return self._aligned(chain, span, score)

    def _hits(self, span: Span) -> tuple[list[Pair], dict[str, float]]:
        """Return the pairs of equal lines, rare lines first, and the weight of each distinct line."""
        places: dict[str, list[int]] = {}
        for number, key in enumerate(self.quoted):
            if key and len(places.setdefault(key, [])) < 8:
                places[key].append(number)
        lines: dict[str, list[int]] = {}
        for number in range(*span):
            key = self.rows[number]
            if key in places:
                lines.setdefault(key, []).append(number)
        weights = {
            key: min(len(key), 40) / len(numbers) * (1 if any(map(str.isalnum, key)) else 0.1)
            for key, numbers in lines.items()
        }
        hits: list[Pair] = []
        for key in sorted(lines, key=lambda key: (len(lines[key]), key)):
            room = max(0, MOST_HITS - len(hits)) // len(places[key])
            hits += [(number, place) for number in lines[key][:room] for place in places[key]]
        hits.sort()
        return hits, weights

    def _windows(self, hits: Sequence[Pair], weights: dict[str, float]) -> list[list[Pair]]:
        """Return the hits in the parts of the file that contain most of the quote, the best part first."""
        width = 2 * len(self.quoted) + SLACK
        covered: Counter[int] = Counter()
        score, stop = 0.0, 0
        scores: list[tuple[float, int, int]] = []
        for start, (line, place) in enumerate(hits):
            while stop < len(hits) and hits[stop][0] < line + width:
                other = hits[stop][1]
                covered[other] += 1
                score += weights[self.quoted[other]] if covered[other] == 1 else 0
                stop += 1
            scores.append((score, start, stop))
            covered[place] -= 1
            score -= weights[self.quoted[place]] if not covered[place] else 0
        best: list[tuple[int, int]] = []
        order = sorted(scores, key=lambda one: (-round(one[0], 6), abs(hits[one[1]][0] - self.near)))
        for _, start, stop in order:
            if all(stop <= first or start >= last for first, last in best):
                best.append((start, stop))
                if len(best) == WINDOWS:
                    break
        return [[*hits[start:stop]] for start, stop in best]

    def _chain(self, hits: list[Pair], weights: dict[str, float]) -> tuple[float, list[Pair]]:
        """Return the pairs with the greatest total weight that ascend on both sides, and that weight."""
        if len(hits) > MOST_IN_WINDOW:
            by_weight = sorted(hits, key=lambda hit: (-weights[self.quoted[hit[1]]], hit))
            hits = sorted(by_weight[:MOST_IN_WINDOW])
        scores: list[float] = []
        before: list[int] = []
        for number, (line, place) in enumerate(hits):
            best, link = 0.0, -1
            for other in range(number):
                above, earlier = hits[other]
                if above < line and earlier < place:
                    score = scores[other] - GAP_COST * abs((line - above) - (place - earlier))
                    if score > best:
                        best, link = score, other
            scores.append(best + weights[self.quoted[place]])
            before.append(link)
        at = max(range(len(hits)), key=lambda number: (scores[number], -number))
        total, chain = scores[at], list[Pair]()
        while at >= 0:
            chain.append(hits[at])
            at = before[at]
        return total, chain[::-1]

    # The lines between and around equal lines

    def _aligned(self, chain: Sequence[Pair], span: Span, score: float) -> Alignment:
        pairs = self._filled(chain, self._around(chain, span))
        while pairs[-1][0] - pairs[0][0] >= 2 * len(self.quoted) + SLACK:
            weaker = 0 if pairs[0] not in chain else -1
            del pairs[weaker]
        return Alignment(pairs[0][0], pairs[-1][0] + 1, tuple(pairs), score)

    def _around(self, chain: Sequence[Pair], span: Span) -> Span:
        """Return the lines of the file that the whole quote would cover."""
        (first, before), (last, place) = chain[0], chain[-1]
        below = len(self.quoted) - 1 - place
        start = first - before - (2 if before else 0)
        stop = last + 1 + below + (2 if below else 0)
        return max(span[0], start), min(span[1], stop)

    def _filled(self, chain: Sequence[Pair], around: Span) -> list[Pair]:
        """Return the pairs of a chain, plus equal or similar lines between them."""
        start, stop = around
        ends = [(start - 1, -1), *chain, (stop, len(self.quoted))]
        pairs: list[Pair] = []
        for (line, place), (next_line, next_place) in pairwise(ends):
            pairs += self._between((line + 1, next_line), (place + 1, next_place))
            if next_place < len(self.quoted):
                pairs.append((next_line, next_place))
        return pairs

    def _between(self, lines: Span, places: Span) -> list[Pair]:
        (line, next_line), (place, next_place) = lines, places
        head: list[Pair] = []
        tail: list[Pair] = []
        while line < next_line and place < next_place and self.rows[line] == self.quoted[place]:
            head.append((line, place))
            line, place = line + 1, place + 1
        while line < next_line and place < next_place and self.rows[next_line - 1] == self.quoted[next_place - 1]:
            next_line, next_place = next_line - 1, next_place - 1
            tail.append((next_line, next_place))
        return [*head, *self._similar((line, next_line), (place, next_place)), *tail[::-1]]

    def _similar(self, lines: Span, places: Span) -> list[Pair]:
        """Return the pairs of similar lines with the greatest total weight that ascend on both sides."""
        height, width = lines[1] - lines[0], places[1] - places[0]
        if height <= 0 or width <= 0 or height * width > MOST_COMPARISONS:
            return []
        ours = [character_pairs(row) for row in self.rows[lines[0] : lines[1]]]
        theirs = [character_pairs(row) for row in self.quoted[places[0] : places[1]]]
        best = [[0.0] * (width + 1) for _ in range(height + 1)]
        shared = [[0.0] * width for _ in range(height)]
        for at in reversed(range(height)):
            for to in reversed(range(width)):
                is_same = self.rows[lines[0] + at] == self.quoted[places[0] + to]
                alike = 1.0 if is_same else likeness(ours[at], theirs[to])
                shared[at][to] = alike if alike >= SIMILAR else 0.0
                best[at][to] = max(best[at + 1][to], best[at][to + 1], best[at + 1][to + 1] + shared[at][to])
        pairs: list[Pair] = []
        at = to = 0
        while at < height and to < width:
            if shared[at][to] and best[at][to] == best[at + 1][to + 1] + shared[at][to]:
                pairs.append((lines[0] + at, places[0] + to))
                at, to = at + 1, to + 1
            elif best[at][to] == best[at + 1][to]:
                at += 1
            else:
                to += 1
        return pairs

    # If no line is equal

    def _by_similar_line(self, span: Span) -> Alignment | None:
        """Find the line most similar to a line of the quote, among those that share a rare word with it."""
        wanted = {place: character_pairs(self.quoted[place]) for place in range(len(self.quoted))}
        best, found = 0.0, None
        for line, place in self._candidates(span):
            alike = likeness(character_pairs(self.rows[line]), wanted[place])
            if alike >= SIMILAR and alike > best:
                best, found = alike, (line, place)
        return None if found is None else self._aligned([found], span, best)

    def _candidates(self, span: Span) -> list[Pair]:
        """Return pairs of lines, one of the file and one of the quote, that may be similar, nearest lines first."""
        words: dict[str, int] = {}
        for place, line in enumerate(self.old):
            for word in WORD.findall(line[:1000]):
                words.setdefault(word[:40], place)
        lines = self.lines[span[0] : span[1]]
        text = "\n".join(lines)
        offsets: dict[int, int] = {}
        for word in sorted(words, key=lambda word: (-len(word), word))[:MOST_WORDS]:
            at = text.find(word)
            for _ in range(MOST_OF_A_WORD):
                if at < 0:
                    break
                offsets.setdefault(at, words[word])
                at = text.find(word, at + len(word))
        pairs: set[Pair] = set()
        number, before = span[0], 0
        for at, place in sorted(offsets.items()):
            number, before = number + text.count("\n", before, at), at
            pairs.add((number, place))
        if not pairs and len(text) <= SMALL:
            longest = max(range(len(self.quoted)), key=lambda place: len(self.quoted[place]))
            pairs = {(line, longest) for line in range(span[0], min(span[1], span[0] + 2000))}
        return sorted(pairs, key=lambda pair: (abs(pair[0] - self.near), pair))
