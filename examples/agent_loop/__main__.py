"""Let a model work on files: `python -m examples.agent_loop anthropic MODEL work.json "Fix the tests" --mount .`."""

from __future__ import annotations

import argparse
import asyncio
import sys

from examples.agent_loop.loop import Model, Outcome, run
from weakfs import HostMount


def model_of(provider: str, name: str, base_url: str | None) -> Model:
    """Return a model; the client library takes the key from its usual place."""
    if provider == "openai":
        from openai import AsyncOpenAI

        from examples.agent_loop.openai_chat import OpenAIChat

        return OpenAIChat(AsyncOpenAI(base_url=base_url), name)
    from anthropic import AsyncAnthropic

    from examples.agent_loop.anthropic_messages import AnthropicMessages

    return AnthropicMessages(AsyncAnthropic(base_url=base_url), name)


def main() -> int:
    options = argparse.ArgumentParser(prog="python -m examples.agent_loop", description=__doc__)
    options.add_argument("provider", choices=["openai", "anthropic"])
    options.add_argument("model", help="the model's name")
    options.add_argument(
        "session", help="the file that stores the conversation and its files; an existing one is continued"
    )
    options.add_argument("task", nargs="?", help="what to do; omit it to continue unfinished work")
    options.add_argument("--mount", help="a directory whose files are copied in when the session is new")
    options.add_argument("--base-url", help="another server that speaks the provider's protocol")
    options.add_argument("--max-turns", type=int, default=50)
    chosen = options.parse_args()

    def show(text: str) -> None:
        print(text, end="", flush=True)

    outcome: Outcome = asyncio.run(
        run(
            model_of(chosen.provider, chosen.model, chosen.base_url),
            chosen.session,
            chosen.task,
            mounts=[HostMount(chosen.mount)] if chosen.mount else [],
            max_turns=chosen.max_turns,
            on_text=show,
        )
    )
    print()
    if outcome.status == "finished":
        return 0
    print(f"{outcome.status}: {outcome.text or 'run it again to continue'}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
