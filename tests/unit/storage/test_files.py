"""A file is there whole or as it was before."""

import os
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from planner.errors import BadInputError, StorageError
from planner.storage.files import write_atomically
from planner.storage.layout import file_name, sample_path
from tests.sample_builders import watch

DISK_FULL = """
import resource, signal, sys
from pathlib import Path
from planner.errors import StorageError
from planner.storage.files import write_atomically
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
try:
    write_atomically(Path(sys.argv[1]), b"x" * 10_000)
except StorageError as error:
    print(error)
"""


def test_content_lands_and_replaces(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "file.json"
    assert write_atomically(path, b"one") == path
    write_atomically(path, "two")
    assert path.read_text() == "two"
    assert list(path.parent.iterdir()) == [path]


def test_no_room_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    # A limit on the file's size makes the kernel refuse the write half-way, as a full disk does.
    path = tmp_path / "snap.json"
    path.write_text("old")
    told = subprocess.run([sys.executable, "-c", DISK_FULL, str(path)], capture_output=True, text=True, check=True)
    assert "snap.json cannot be written (File too large)" in told.stdout
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_in_the_way_is_a_named_error(tmp_path: Path) -> None:
    (tmp_path / "snap.json").mkdir()
    with pytest.raises(BadInputError, match=r"snap\.json is a folder, expected a file to write"):
        write_atomically(tmp_path / "snap.json", b"x")
    assert [path.name for path in tmp_path.iterdir()] == ["snap.json"]


@pytest.mark.parametrize(("umask", "mode"), [(0o022, 0o644), (0o077, 0o600)])
def test_a_new_file_gets_what_the_umask_leaves(tmp_path: Path, umask: int, mode: int) -> None:
    before = os.umask(umask)
    try:
        path = write_atomically(tmp_path / "snap.json", b"x")
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == mode


def test_a_file_that_was_there_keeps_its_mode_and_a_link_stays_a_link(tmp_path: Path) -> None:
    kept, link = tmp_path / "kept.json", tmp_path / "link.json"
    kept.write_text("old")
    kept.chmod(0o640)
    link.symlink_to(kept)
    write_atomically(link, b"new")
    assert link.is_symlink()
    assert kept.read_text() == "new"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o640


def test_a_pipe_is_written_into_and_stays_a_pipe(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with ThreadPoolExecutor() as pool:
        read = pool.submit(pipe.read_bytes)
        write_atomically(pipe, b"through")
        assert read.result(10) == b"through"
    assert pipe.is_fifo()


def test_a_full_device_is_a_named_error_and_stays_a_device() -> None:
    with pytest.raises(StorageError, match=r"/dev/full cannot be written \(No space left on device\)"):
        write_atomically(Path("/dev/full"), b"x")
    assert Path("/dev/full").is_char_device()


def test_names_of_groups_become_one_path_segment() -> None:
    assert file_name("%RETRY%a/b|c") == "%25RETRY%25a%2Fb%7Cc"


def test_samples_lie_by_group_and_time(tmp_path: Path) -> None:
    path = sample_path(tmp_path, watch(2)[1])
    assert path.relative_to(tmp_path).as_posix() == "samples/rocketmq/DefaultCluster/shop/20261121T100005.000Z.json"
