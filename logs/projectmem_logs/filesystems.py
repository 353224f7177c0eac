"""Which file system holds the log: on network ones locks and appends cannot be trusted, so init refuses them."""

from __future__ import annotations

import os
import sys

from .errors import NetworkFilesystemError

NETWORK = frozenset(
    ("nfs", "nfs3", "nfs4", "cifs", "smb", "smb2", "smb3", "smbfs", "afs", "afpfs", "webdav", "davfs", "ncpfs", "9p", "ceph",
     "lustre", "beegfs", "glusterfs", "fuse.sshfs", "fuse.glusterfs", "fuse.davfs2", "fuse.s3fs", "fuse.rclone",
     "fuse.gcsfuse", "fuse.ceph", "fuse.smbnetfs", "fuse.curlftpfs", "fuse.juicefs", "macfuse_sshfs")
)  # fmt: skip


def refuse_network(home: str, mounts: str | None = None) -> None:
    """Raise NetworkFilesystemError when `home` (or its nearest existing parent) lies on a network file system."""
    kind = filesystem(home, mounts)
    if kind in NETWORK:
        raise NetworkFilesystemError(
            f"{home} is on {kind}, a network file system, where file locks and appends cannot be trusted with an event log; "
            f"set PROJECTMEM_GATE_HOME to a folder on a local disk, or allow it explicitly and use it from one machine only"
        )


def filesystem(path: str, mounts: str | None = None) -> str:
    """The type of the file system of `path`, "" when the system does not tell.

    mounts  text in the form of /proc/self/mountinfo (proc(5)); read from there when None
    """
    if mounts is None and sys.platform == "darwin":
        return _darwin(path)
    if mounts is None:
        try:
            with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as f:
                mounts = f.read()
        except OSError:
            return ""
    real = os.path.realpath(path)
    best, kind = "", ""
    for line in mounts.splitlines():
        fields, _, rest = line.partition(" - ")
        parts = fields.split(" ")
        if len(parts) < 5 or not rest:
            continue
        point = parts[4].replace("\\040", " ").replace("\\011", "\t").replace("\\012", "\n").replace("\\134", "\\")
        inside = point == "/" or real == point or real.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= len(best):  # of two mounts on one point the later one is seen
            best, kind = point, rest.split(" ", 1)[0]
    return kind


def _darwin(path: str) -> str:
    """statfs(2): f_fstypename lies 72 bytes into the structure of 64-bit inodes."""
    import ctypes

    while not os.path.exists(path) and os.path.dirname(path) != path:
        path = os.path.dirname(path)
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        call = getattr(libc, "statfs$INODE64", None) or libc.statfs
        buffer = ctypes.create_string_buffer(4096)
        if call(os.fsencode(path), buffer) != 0:
            return ""
        return buffer.raw[72:88].split(b"\0", 1)[0].decode("ascii", "replace")
    except (OSError, AttributeError):
        return ""
