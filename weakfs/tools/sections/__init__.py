"""Sections of a prompt: text for the model, tools, and the filesystem that the tools work on.

```
section = VfsSection(session=session, mounts=[HostMount("my-project")])
prompt = Prompt(sections=[Section(title="Task", key="task", template="Fix the tests."), section])
rendered = prompt.render()                          # .text for the model, .definitions("anthropic") for the client
result = dispatch_tool_call(prompt, "read_file", {"path": "/app.py"}, session=session)
```
"""

from weakfs.tools.sections.podman import PODMAN_TOOLS, PodmanSection
from weakfs.tools.sections.prompt import Prompt, RenderedPrompt, adispatch_tool_call, dispatch_tool_call
from weakfs.tools.sections.section import FILESYSTEM_TOOLS, FilesystemSection, Section, VfsSection
from weakfs.tools.sections.workspace import WorkspaceSection

__all__ = [
    "FILESYSTEM_TOOLS",
    "PODMAN_TOOLS",
    "FilesystemSection",
    "PodmanSection",
    "Prompt",
    "RenderedPrompt",
    "Section",
    "VfsSection",
    "WorkspaceSection",
    "adispatch_tool_call",
    "dispatch_tool_call",
]
