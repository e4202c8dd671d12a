"""A session's files as a mounted directory for any program; each change is an event. Needs `weakfs[mount]` and FUSE.

`mount(files, directory)` mounts a filesystem while a block runs. What programs write to a file is stored when they
close or sync it.
"""

from weakfs.integrations.missing_packages import needed

try:
    with needed("mount", package="mfusepy", modules=("mfusepy",)):
        import mfusepy as _mfusepy  # noqa: F401  # pyright: ignore[reportUnusedImport]
except OSError as error:
    raise OSError(
        f"cannot use weakfs.integrations.mount: {error}; install FUSE (on Debian: apt-get install fuse3)"
    ) from error

from weakfs.integrations.mount.mounted_directory import Mount, MountError, mount

__all__ = ["Mount", "MountError", "mount"]
