"""The ledger of acknowledgements, and how long they took."""

from __future__ import annotations

from collections import defaultdict

from attrs import define, field


@define
class Account:
    """The state of one line of calls: the number of the last call that was acknowledged.

    `may_have_more` is true if a worker has been killed since, so that one more call may have taken effect.
    """

    number: int = 0
    may_have_more: bool = False


def accounts() -> defaultdict[str, Account]:
    return defaultdict(Account)


@define
class Ledger:
    """The acknowledged calls, against which everything that is found later is checked."""

    accounts: defaultdict[str, Account] = field(factory=accounts)
    # Everything that was found to be wrong.
    found: list[str] = field(factory=list[str])
    # In nanoseconds.
    calls: list[int] = field(factory=list[int])
    opens: list[int] = field(factory=list[int])
    # Calls that took effect but were not acknowledged, because the worker was killed in between.
    unacknowledged: int = 0
    # Calls whose files are there, but not the record of the call.
    unrecorded: int = 0
    conflicts: int = 0
    # The number of workers that were killed while working.
    kills: int = 0

    def take(self, job: str, words: list[str]) -> None:
        """Take one report: what a worker found when it opened a session, or a call that was acknowledged."""
        name = job.split(" ")[0]
        account = self.accounts[name]
        kind, *rest = words
        if kind == "opened":
            number, took, unrecorded = map(int, rest)
            self.opens.append(took)
            self.unrecorded += self.check(name, number) * unrecorded
        elif kind == "called":
            number, took, conflicts = map(int, rest)
            if number != account.number + 1:
                self.found.append(f"{name}: call {number} follows call {account.number}")
            account.number = number
            self.calls.append(took)
            self.conflicts += conflicts
        elif kind == "wrong":
            self.found.append(f"{name}: {' '.join(rest)}")

    def check(self, name: str, number: int) -> bool:
        """Check the number of calls that a session has, and return whether one more than acknowledged took effect."""
        account = self.accounts[name]
        has_more = account.may_have_more and number == account.number + 1
        if number != account.number and not has_more:
            self.found.append(f"{name}: {account.number} calls were acknowledged, but the session has {number}")
        self.unacknowledged += has_more
        account.number, account.may_have_more = number, False
        return has_more

    def killed(self, job: str) -> None:
        """Note that a worker was killed while working on a job."""
        self.accounts[job.split(" ")[0]].may_have_more = True
        self.kills += 1
