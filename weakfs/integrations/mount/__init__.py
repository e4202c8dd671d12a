"""A session's files as a mounted directory for any program; each change is an event. Needs `weakfs[mount]` and FUSE.

`mount(files, directory)` mounts a filesystem while a block runs. What programs write to a file is stored when they
close or sync it.
"""

try:
    import mfusepy as _mfusepy  # noqa: F401  # pyright: ignore[reportUnusedImport]
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "cannot use weakfs.integrations.mount: the package mfusepy is not installed; run: pip install 'weakfs[mount]'"
    ) from error
except OSError as error:
    raise OSError(
        f"cannot use weakfs.integrations.mount: {error}; install FUSE, on Debian: apt-get install fuse3"
    ) from error

from weakfs.integrations.mount.mounted_directory import Mount, MountError, mount

__all__ = ["Mount", "MountError", "mount"]
