"""Sections of a prompt: what a model reads, the tools that it is given there, and the filesystem that they work on.

```
section = VfsSection(session=session, mounts=[HostMount("my-project")])
prompt = Prompt(sections=[Section(title="Task", key="task", template="Fix the tests."), section])
rendered = prompt.render()                          # .text for the model, .definitions("anthropic") for the client
result = dispatch_tool_call(prompt, "read_file", {"path": "/app.py"}, session=session)
```
"""

from weakfs.tools.sections.prompt import Prompt, RenderedPrompt, adispatch_tool_call, dispatch_tool_call
from weakfs.tools.sections.section import FILESYSTEM_TOOLS, FilesystemSection, Section, VfsSection
from weakfs.tools.sections.workspace import WorkspaceSection

__all__ = [
    "FILESYSTEM_TOOLS",
    "FilesystemSection",
    "Prompt",
    "RenderedPrompt",
    "Section",
    "VfsSection",
    "WorkspaceSection",
    "adispatch_tool_call",
    "dispatch_tool_call",
]
