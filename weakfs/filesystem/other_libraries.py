"""What other libraries call the methods of a filesystem: `os`, `shutil`, `pathlib`, fsspec, shells."""

from __future__ import annotations

from weakfs.attribute_hints import attribute_hints

filesystem_hints = attribute_hints(
    cat="read(path).content",
    commit="an OverlayFilesystem, which has commit(), or session.save(path)",
    cp="copy(src, dst)",
    diff="weakfs.reducers.diff(before.tree(), after.tree())",
    edit="weakfs.editing.replace and write, or the tool edit_file",
    find="walk(path)",
    getsize="stat(path).size_bytes",
    info="stat(path)",
    is_dir="is_directory(path)",
    isdir="is_directory(path)",
    isfile="is_file(path)",
    iterdir="list(path)",
    listdir="list(path)",
    load="weakfs.Session.load(path)",
    ls="list(path)",
    makedirs="mkdir(path)",
    mv="move(src, dst)",
    read_text="read(path).content",
    readlines="read_lines(path)",
    remove="delete(path)",
    rename="move(src, dst)",
    rglob="glob(pattern)",
    rm="delete(path)",
    rmdir="delete(path)",
    rmtree="delete(path, recursive=True)",
    rollback="session.rollback(target), or restore(snapshot)",
    save="session.save(path)",
    scandir="list(path)",
    touch="append(path, '')",
    undo="session.undo()",
    unlink="delete(path)",
    write_text="write(path, content)",
)
"""Decorate a filesystem with hints for these names."""
