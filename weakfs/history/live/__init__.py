"""The timeline as a live page: it follows its session, and takes work back after a preview."""

from weakfs.history.live.server import LiveServer
from weakfs.history.live.timeline import LiveTimeline, Wanted

__all__ = ["LiveServer", "LiveTimeline", "Wanted"]
