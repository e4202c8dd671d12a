"""An agent loop, whole: a model, its tools, and one file that keeps the conversation and all of its files.

- `conversation.py`: what was said, as a slice of the session
- `loop.py`: ask the model, make its calls side by side, save, again
- `openai_chat.py`, `anthropic_messages.py`: the two client libraries, one short file each

Run it with `python -m examples.agent_loop --help`. It may be killed at any moment: the same command goes on from the
last save, in another process or on another machine.
"""
