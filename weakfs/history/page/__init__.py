"""The timeline as one self-contained HTML page: its data, and the template that shows it."""

from weakfs.history.page.contents import PageLimits
from weakfs.history.page.document import timeline_page

__all__ = ["PageLimits", "timeline_page"]
