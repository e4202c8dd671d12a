"""Images that a tool returns, and line numbers: what `read_file` shows a model besides plain text."""

from __future__ import annotations

from base64 import b64decode, b64encode
from typing import cast

import pytest
from anthropic.types import ToolResultBlockParam
from google.genai import types as gemini
from mcp import types as mcp
from openai.types.chat import ChatCompletionToolMessageParam
from openai.types.responses.response_input_item_param import FunctionCallOutput
from pydantic import TypeAdapter

from weakfs import Capability, InMemoryFilesystem, Policy, PolicyRule, Session, ToolResult, Toolset
from weakfs.tools import Image, ToolCalls
from weakfs.tools.handlers import ReadFileReceipt
from weakfs.tools.handlers.read_file import MAX_IMAGE
from weakfs.tools.schemas.content import Provider
from weakfs.tools.sections import Prompt, VfsSection, dispatch_tool_call

# One white pixel.
PNG = b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8/5+hHgAHggJ/PchI7wAAAABJRU5ErkJggg==")
IMAGES = {
    "image/png": PNG,
    "image/jpeg": b"\xff\xd8\xff\xe0\x00\x10JFIF" + b"\xd9" * 20,
    "image/gif": b"GIF89a\x01\x00\x01\x00\x80\x00\x00" + b"\xff" * 20,
    "image/webp": b"RIFF\x24\x00\x00\x00WEBPVP8 \xff\x9d\x01\x2a",
}


def toolset(
    data: bytes = PNG, *, capability: Capability | None = None, policy: Policy | None = None,
    provider: Provider | None = None,
) -> Toolset:  # fmt: skip
    session = Session()
    fs = InMemoryFilesystem(session)
    fs.write_bytes("/a.png", data)
    fs.write("/text", "one\ntwo\nthree")
    return Toolset(session, fs, capability=capability, policy=policy, provider=provider)


def read(tools: Toolset, path: str = "/a.png", **more: object) -> ToolResult[object]:
    return tools.call("read_file", {"path": path, **more})


def look(tools: Toolset, **more: object) -> ToolResult[object]:
    return read(tools, "/a.png", images=True, **more)


# Images


@pytest.mark.parametrize("media_type", IMAGES)
def test_an_image_is_returned_as_an_image(media_type: str) -> None:
    data = IMAGES[media_type]

    result = look(toolset(data))

    assert result.images == (Image(media_type, data),)  # type: ignore[arg-type]  # one of the literals
    assert result.message == f"Read /a.png, an image ({media_type}, {len(data)} bytes)"
    receipt = result.value_as(ReadFileReceipt)
    assert (receipt.media_type, receipt.size_bytes, receipt.content) == (media_type, len(data), None)


def test_images_are_returned_if_the_runtime_names_its_provider() -> None:
    for provider in ("openai", "anthropic", "gemini", "mcp"):
        assert read(toolset(provider=provider)).images
    assert not read(toolset(provider="mcp"), images=False).images
    assert read(toolset()).error_code == "not_utf8"


def test_the_option_to_disable_images_is_hidden_from_models() -> None:
    assert "images" not in str(toolset(provider="mcp").definitions())


def test_an_image_is_not_stored_in_the_record_of_the_call() -> None:
    tools = toolset(PNG + b"\xff" * 100_000)

    look(tools)

    (call,) = tools.session[ToolCalls].all()
    assert len(call.receipt) < 1000


def test_bytes_and_lines_of_an_image_are_read_as_from_any_file() -> None:
    assert look(toolset(), encoding="bytes").message == b64encode(PNG).decode()
    assert look(toolset(), limit=1).error_code == "not_utf8"
    assert look(toolset(b"\xff\xfe\x00")).error_code == "not_utf8"


def test_an_image_that_is_too_large_is_refused() -> None:
    assert look(toolset(PNG + bytes(MAX_IMAGE - len(PNG)))).images
    result = look(toolset(PNG + bytes(MAX_IMAGE)))

    assert result.error_code == "inline_required_too_large"
    assert f"{MAX_IMAGE} bytes are allowed; make it smaller first" in result.message


@pytest.mark.parametrize(
    "capability",
    [
        Capability(max_inline_bytes=50),
        Capability(max_read_bytes=50),
    ],
    ids=["inline", "read"],
)
def test_a_withheld_image_is_not_shown(capability: Capability) -> None:
    result = look(toolset(capability=capability))

    assert (result.success, result.images, result.error_code) == (False, (), "inline_required_too_large")


def test_not_even_the_kind_of_a_withheld_image_is_revealed() -> None:
    rule = PolicyRule(effect="blob", operations=["read"], paths="/", reason="secret")
    result = look(toolset(policy=Policy([rule])))

    assert (result.success, result.images) == (True, ())
    assert "image" not in f"{result.message}{result.value}".replace("image_type", "").replace("images", "")


def test_every_provider_accepts_the_content_of_a_result_with_an_image() -> None:
    result = look(toolset())
    data = b64encode(PNG).decode()
    text = result.message

    content = result.content("anthropic")
    block = {"type": "tool_result", "tool_use_id": "a", "content": content}
    TypeAdapter(ToolResultBlockParam).validate_python(block)
    assert content == [
        {"type": "text", "text": text},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}},
    ]

    output = {"type": "function_call_output", "call_id": "a", "output": result.content("openai", api="responses")}
    TypeAdapter(FunctionCallOutput).validate_python(output)
    assert output["output"] == [
        {"type": "input_text", "text": text},
        {"type": "input_image", "image_url": f"data:image/png;base64,{data}"},
    ]

    parts = [gemini.Part.model_validate(part) for part in result.content("gemini")]
    assert parts[0].text == text
    assert parts[1].inline_data == gemini.Blob(mime_type="image/png", data=PNG)

    answered = mcp.CallToolResult.model_validate({"content": result.content("mcp")})
    assert [part.type for part in answered.content] == ["text", "image"]


def test_with_chat_completions_the_model_is_told_that_tools_cannot_return_images() -> None:
    content = look(toolset()).content("openai")

    message = {"role": "tool", "tool_call_id": "a", "content": content}
    TypeAdapter(ChatCompletionToolMessageParam).validate_python(message)
    assert str(content[0]["text"]).endswith("[1 image left out: this API takes only text from tools]")


@pytest.mark.parametrize("provider", ["openai", "anthropic", "gemini", "mcp"])
def test_a_result_without_images_is_its_message(provider: Provider) -> None:
    (part,) = read(toolset(), "/text").content(provider)

    assert part["text"] == "one\ntwo\nthree"


def test_content_requires_a_known_provider() -> None:
    with pytest.raises(ValueError, match="there is no provider 'cohere'"):
        look(toolset()).content(cast(Provider, "cohere"))


# Line numbers


def test_lines_are_numbered_as_by_cat_on_request() -> None:
    tools = toolset()

    assert read(tools, "/text").message == "one\ntwo\nthree"
    result = read(tools, "/text", line_numbers=True)
    assert result.message == "     1\tone\n     2\ttwo\n     3\tthree"
    assert result.value_as(ReadFileReceipt).content == "one\ntwo\nthree"
    assert read(tools, "/text", line_numbers=True, offset=2, limit=1).message == (
        "     2\ttwo\n[lines 2 to 2 of 3; continue with offset=3]"
    )


def test_an_empty_line_at_the_end_has_no_number() -> None:
    tools = toolset()
    tools.filesystem.write("/ended", "a\n\n")

    assert read(tools, "/ended", line_numbers=True).message == "     1\ta\n     2\t\n"


def test_models_of_anthropic_get_line_numbers_unless_they_ask_for_none() -> None:
    tools = toolset(provider="anthropic")

    assert read(tools, "/text", offset=3).message == "     3\tthree"
    assert tools.call("read_file", '{"file_path": "/text", "line_numbers": null, "limit": 3}').message.startswith("   ")
    assert read(tools, "/text", line_numbers=False).message == "one\ntwo\nthree"
    assert read(tools, "/text", offset_bytes=0).message == "one\ntwo\nthree"


def test_a_definition_states_the_default_that_calls_use() -> None:
    def default(tools: Toolset) -> object:
        (tool,) = [one for one in tools.definitions("anthropic") if one["name"] == "read_file"]
        schema = cast("dict[str, dict[str, dict[str, object]]]", tool["input_schema"])
        return schema["properties"]["line_numbers"]["default"]

    assert default(toolset()) is False
    assert default(toolset(provider="anthropic")) is True


def test_the_provider_of_a_toolset_is_the_default_of_its_definitions() -> None:
    assert toolset(provider="mcp").definitions() == toolset().definitions("mcp")
    with pytest.raises(ValueError, match="cannot define tools without a provider"):
        toolset().definitions()
    with pytest.raises(ValueError, match="there is no provider 'cohere'"):
        toolset(provider=cast(Provider, "cohere"))


def test_the_provider_of_a_prompt_applies_to_its_tools() -> None:
    session = Session()
    section = VfsSection(session=session)
    section.filesystem.write("/text", "one\n")
    prompt = Prompt(sections=[section], provider="anthropic")

    assert dispatch_tool_call(prompt, "read_file", '{"path": "/text"}', session=session).message == "     1\tone\n"
    assert prompt.render().definitions() == prompt.toolset("ls", session).definitions("anthropic")
