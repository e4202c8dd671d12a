"""The providers whose models tools are offered to."""

from __future__ import annotations

from typing import Literal

Provider = Literal["openai", "anthropic", "gemini", "mcp"]
OpenAIApi = Literal["chat", "responses"]
