"""The undo journal: what work in progress changes on a disk, and recovery after a crash."""
