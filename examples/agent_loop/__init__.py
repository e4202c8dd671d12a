"""A complete agent loop: a model, its tools, and one file that stores the conversation and all of its files.

- `conversation.py`: the messages, as a slice of the session
- `loop.py`: ask the model, make its calls concurrently, save, repeat
- `openai_chat.py`, `anthropic_messages.py`: the two client libraries, one short file each

Run it with `python -m examples.agent_loop --help`. It may be killed at any moment: the same command continues from the
last save, in another process or on another machine.
"""
