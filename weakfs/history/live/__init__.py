"""The timeline as a live page, which follows its session and can undo work after a preview."""

from weakfs.history.live.server import LiveServer
from weakfs.history.live.timeline import LiveTimeline, Wanted

__all__ = ["LiveServer", "LiveTimeline", "Wanted"]
