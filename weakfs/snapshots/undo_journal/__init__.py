"""The undo journal: a log of the changes of unfinished work on a disk, and recovery after a crash."""
