"""Custom rules in a policy: called before and after a call, and able to refuse it but nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest
from attrs import evolve, frozen

from weakfs import (
    Capability,
    InMemoryFilesystem,
    Policy,
    PolicyRule,
    Registry,
    Session,
    ToolContext,
    ToolResult,
    Toolset,
    event,
    reducer,
)
from weakfs.tools import CallToJudge
from weakfs.tools.permissions import PathPolicy


@event("test/counted")
@frozen
class Counted:
    """A call was counted."""


@event("test/budget")
@frozen
class Budget:
    """How many calls were made."""

    used: int = 0

    @reducer(on=Counted)
    def on_counted(self, event: Counted) -> Budget:
        return evolve(self, used=self.used + 1)


class AtMostTwo(Policy):
    """Allows two calls that change something."""

    def check(self, call: CallToJudge, context: ToolContext) -> str | None:
        budget = context.session[Budget].latest()
        return "two changes were made already" if budget is not None and budget.used >= 2 else None

    def on_result(self, call: CallToJudge, result: ToolResult[object], context: ToolContext) -> str | None:
        if result.success and call.operation in ("write", "edit"):
            context.session.dispatch(Counted())
        return None


REGISTRY = Registry.standard().with_types(Counted, Budget)


def with_budget(session: Session) -> Toolset:
    session.install(Budget, initial=Budget)
    return Toolset(session, InMemoryFilesystem(session), policy=AtMostTwo())


def toolset(policy: Policy, capability: Capability | None = None) -> Toolset:
    session = Session()
    files = InMemoryFilesystem(session)
    files.write("/a.txt", "old\n")
    return Toolset(session, files, policy=policy, capability=capability)


def write(tools: Toolset, path: str = "/a.txt") -> ToolResult[object]:
    return tools.call("write_file", {"path": path, "content": "new\n"}, caller="ann", call_id="c1")


def test_a_check_refuses_a_call_before_it_is_made_and_says_why() -> None:
    seen: list[CallToJudge] = []

    def check(call: CallToJudge, context: ToolContext) -> str | None:
        seen.append(call)
        return "not on Sundays" if call.name == "write_file" else None

    tools = toolset(Policy(check=check))
    result = write(tools)

    assert (result.status, result.error_code) == ("forbidden", "policy_denied")
    assert result.message == "cannot call write_file: not on Sundays"
    assert result.value.reason == "not on Sundays"  # type: ignore[attr-defined]  # every receipt has one
    assert tools.filesystem.read("/a.txt").content == "old\n"
    assert (seen[0].operation, seen[0].call_id, seen[0].caller) == ("write", "c1", "ann")
    assert seen[0].read_arguments() == {"path": "/a.txt", "content": "new\n"}
    assert tools.call("read_file", {"path": "/a.txt"}).success


@pytest.mark.parametrize("tool", ["write_file", "read_file"])
def test_a_refused_result_is_undone_and_not_returned(tool: str) -> None:
    def on_result(call: CallToJudge, result: ToolResult[object], context: ToolContext) -> str | None:
        return "it looks like a secret" if result.success else None

    tools = toolset(Policy(on_result=on_result))
    more = {"content": "new\n"} if tool == "write_file" else {}
    result = tools.call(tool, {"path": "/a.txt", **more})

    assert (result.success, result.error_code) == (False, "policy_denied")
    assert result.message == f"cannot call {tool}: it looks like a secret"
    assert tools.filesystem.read("/a.txt").content == "old\n"


def broken_check(call: CallToJudge, context: ToolContext) -> str | None:
    raise ZeroDivisionError("by zero")


def broken_on_result(call: CallToJudge, result: ToolResult[object], context: ToolContext) -> str | None:
    raise ZeroDivisionError("by zero")


@pytest.mark.parametrize("policy", [Policy(check=broken_check), Policy(on_result=broken_on_result)])
def test_a_rule_that_fails_refuses_the_call_and_says_so(policy: Policy) -> None:
    tools = toolset(policy)
    for result in (write(tools), tools.call("read_file", {"path": "/a.txt"})):
        assert result.error_code == "policy_denied"
        assert "failed (ZeroDivisionError: by zero), and a call that cannot be judged is refused" in result.message
    assert tools.filesystem.read("/a.txt").content == "old\n"


def test_a_rule_that_returns_anything_but_a_reason_refuses_the_call() -> None:
    tools = toolset(Policy(check=lambda call, context: True))  # type: ignore[arg-type, return-value]  # the test
    assert "returned a bool instead of None or a reason" in write(tools).message
    assert write(toolset(Policy(check=lambda call, context: ""))).error_code == "policy_denied"


def test_custom_rules_allow_nothing_that_is_forbidden() -> None:
    denied = PolicyRule(effect="deny", operations=["write"], paths="/a.txt", reason="kept")
    allowing = Policy([denied], check=lambda call, context: None, on_result=lambda call, result, context: None)
    assert write(toolset(allowing)).error_code == "policy_denied"
    assert (
        write(toolset(Policy(check=lambda call, context: None), Capability(fs_roots=("/src",)))).status == "forbidden"
    )


def test_the_state_of_a_rule_is_a_slice_that_is_saved_and_rolled_back(tmp_path: Path) -> None:
    session = Session(registry=REGISTRY)
    tools = with_budget(session)
    assert write(tools, "/1").success
    session.snapshot("one")
    assert write(tools, "/2").success
    assert write(tools, "/3").message == "cannot call write_file: two changes were made already"
    session.rollback("one")
    assert write(tools, "/2").success
    session.save(tmp_path / "session.json")

    again = with_budget(Session.load(tmp_path / "session.json", registry=REGISTRY))
    assert write(again, "/3").error_code == "policy_denied"


def test_a_rule_also_sees_failed_calls_which_stay_failed() -> None:
    seen: list[tuple[str, str | None]] = []

    def on_result(call: CallToJudge, result: ToolResult[object], context: ToolContext) -> str | None:
        seen.append((call.name, result.error_code))
        return "and no more of that" if result.error_code == "not_found" else None

    tools = toolset(Policy(on_result=on_result))
    result = tools.call("read_file", {"path": "/none"})

    assert (result.success, result.error_code) == (False, "not_found")
    assert result.message.endswith("cannot call read_file: and no more of that")
    assert tools.call("read_file", {"path": 5}).error_code == "invalid_arguments"
    assert write(tools).success
    assert seen == [("read_file", "not_found"), ("read_file", "invalid_arguments"), ("write_file", None)]


def test_only_a_policy_with_custom_rules_judges_whole_calls() -> None:
    rule = PolicyRule(effect="deny", operations=["read"], paths="/secrets", reason="credentials")

    assert not PathPolicy([rule]).has_custom_rules
    assert not Policy([rule]).has_custom_rules
    assert Policy([rule], check=lambda call, context: None).has_custom_rules
    assert Policy([rule], on_result=lambda call, result, context: None).has_custom_rules
    assert AtMostTwo([rule]).has_custom_rules
