"""The folder engine: event streams as journals in a folder, and keys as files."""

from weakfs.storage.folder.errors import JournalDamaged
from weakfs.storage.folder.storage import FolderStorage
from weakfs.storage.folder.store import Durability, FolderEventStore

__all__ = ["Durability", "FolderEventStore", "FolderStorage", "JournalDamaged"]
