"""Programs that open files through fsspec, on the files of a session. Each is skipped if it is not installed."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest

from weakfs import InMemoryFilesystem, Session
from weakfs.integrations.fsspec import WeakfsFileSystem


@pytest.fixture
def files() -> InMemoryFilesystem:
    return InMemoryFilesystem(Session())


def installed(name: str) -> Any:
    pytest.importorskip(name)
    return import_module(name)


@pytest.mark.parametrize("name", ["a.csv", "a.parquet", "a.pkl.gz"])
def test_pandas_writes_and_reads(files: InMemoryFilesystem, name: str) -> None:
    pandas = installed("pandas")
    if name.endswith("parquet"):
        installed("pyarrow")
    frame = pandas.DataFrame({"a": [1, 2, 3], "b": list("xyz")})
    options = {"filesystem": files}
    kind = {"csv": "csv", "parquet": "parquet", "gz": "pickle"}[name.rpartition(".")[2]]
    without_index = {"index": False} if kind == "csv" else {}
    getattr(frame, f"to_{kind}")(f"weakfs:///d/{name}", storage_options=options, **without_index)
    assert getattr(pandas, f"read_{kind}")(f"weakfs:///d/{name}", storage_options=options).equals(frame)
    # One file is one operation.
    assert files.session is not None
    files.session.undo()
    assert not files.exists(f"/d/{name}")


def test_pyarrow_writes_and_reads_a_dataset(files: InMemoryFilesystem) -> None:
    arrow, parquet, fs = installed("pyarrow"), installed("pyarrow.parquet"), installed("pyarrow.fs")
    handler = fs.PyFileSystem(fs.FSSpecHandler(WeakfsFileSystem(files)))
    table = arrow.table({"a": [1, 2, 3], "b": list("xyz")})
    parquet.write_to_dataset(table, "/ds", partition_cols=["b"], filesystem=handler)
    assert parquet.read_table("/ds", filesystem=handler).num_rows == 3
    assert {entry.name for entry in files.list("/ds")} == {"b=x", "b=y", "b=z"}


def test_zarr_writes_and_reads_an_array(files: InMemoryFilesystem) -> None:
    zarr, wrapper = installed("zarr"), installed("fsspec.implementations.asyn_wrapper")
    fs = wrapper.AsyncFileSystemWrapper(WeakfsFileSystem(files), asynchronous=True)
    store = zarr.storage.FsspecStore(fs, path="/z")
    array = zarr.create_array(store, shape=(20, 20), chunks=(5, 5), dtype="i4")
    array[:] = 7
    assert zarr.open_array(store, mode="r")[5, 7] == 7
    assert files.is_directory("/z")


@pytest.mark.filterwarnings("ignore:.*not explicitly implemented:UserWarning")
def test_paths_of_universal_pathlib_work(files: InMemoryFilesystem) -> None:
    place = installed("upath").UPath("weakfs:///d", filesystem=files)
    place.mkdir()
    (place / "new.txt").write_text("x")
    (place / "new.txt").rename(place / "moved.txt")
    assert [path.name for path in place.iterdir()] == ["moved.txt"]
    assert (place / "moved.txt").read_text() == "x"
