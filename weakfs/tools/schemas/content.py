"""Tool results with images, as the content parts that each provider accepts."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Sequence
from typing import Literal, cast, get_args

from attrs import field

from weakfs.class_decorators import frozen
from weakfs.messages import plural

# The providers whose models are offered tools, and the two APIs of OpenAI.
Provider = Literal["openai", "anthropic", "gemini", "mcp"]
OpenAIApi = Literal["chat", "responses"]
ImageType = Literal["image/png", "image/jpeg", "image/gif", "image/webp"]

Part = dict[str, object]


@frozen
class Image:
    """An image for a model: its media type and the bytes of the file."""

    media_type: ImageType
    data: bytes = field(repr=False)

    @property
    def base64(self) -> str:
        """The bytes in base64."""
        return b64encode(self.data).decode()


def image_type(data: bytes) -> ImageType | None:
    """Return the media type of an image that models accept, by its signature; `None` for other contents."""
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if data.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if data.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    if data.startswith(b"RIFF") and data[8:12] == b"WEBP":
        return "image/webp"
    return None


def check_provider(provider: str | None) -> None:
    """Raise `ValueError` for an unknown provider."""
    if provider is not None and provider not in get_args(Provider):
        raise ValueError(f"there is no provider {provider!r}; use one of {', '.join(get_args(Provider))}")


def chosen_provider(asked: Provider | None, own: Provider | None) -> Provider:
    """Return the requested provider, by default that of the toolset or prompt; raises `ValueError` if there is none."""
    if asked is None and own is None:
        raise ValueError(
            f"cannot define tools without a provider: name one of {', '.join(get_args(Provider))} here, or "
            f"pass provider=... to the Toolset or Prompt"
        )
    return cast(Provider, own if asked is None else asked)


def content_parts(message: str, images: Sequence[Image], provider: Provider, api: OpenAIApi) -> list[Part]:
    """Return a message and images as the parts of a provider's tool result."""
    check_provider(provider)
    if provider == "openai":
        return _responses(message, images) if api == "responses" else _chat(message, images)
    text: Part = {"text": message} if provider == "gemini" else {"type": "text", "text": message}
    return [text, *map(_IMAGES[provider], images)]


def _chat(message: str, images: Sequence[Image]) -> list[Part]:
    note = f"{message}\n[{plural(len(images), 'image')} left out: this API takes only text from tools]"
    return [{"type": "text", "text": note if images else message}]


def _responses(message: str, images: Sequence[Image]) -> list[Part]:
    shown: list[Part] = [
        {"type": "input_image", "image_url": f"data:{image.media_type};base64,{image.base64}"} for image in images
    ]
    return [{"type": "input_text", "text": message}, *shown]


def _anthropic(image: Image) -> Part:
    source = {"type": "base64", "media_type": image.media_type, "data": image.base64}
    return {"type": "image", "source": source}


def _gemini(image: Image) -> Part:
    return {"inlineData": {"mimeType": image.media_type, "data": image.base64}}


def _mcp(image: Image) -> Part:
    return {"type": "image", "data": image.base64, "mimeType": image.media_type}


_IMAGES: dict[str, Callable[[Image], Part]] = {"anthropic": _anthropic, "gemini": _gemini, "mcp": _mcp}
