"""Where this library keeps its files, and folders that nothing leaves.

`Workspace` reaches every file by descriptor: it holds the folder open and walks from there, one name at a time, and resolves
symbolic links itself. So there is no moment between a check and an opening in which a link can be put in the way, and a link that
stays inside works while one that leads outside is refused. Where the kernel can resolve beneath a descriptor (`openat2`), that is
the quick way for the folders of a path; whatever it does not accept is left to the walk, which decides.

Source: CONTRACT A10, A21; tool guide §10.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import os
import stat as st
import sys
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from types import TracebackType
from typing import IO, Any, NamedTuple, TypeAlias

from lollms_client._imports import watch
from lollms_client._kept import GIT, RECORDS, belongs_to, identity, is_beneath, records_beneath
from lollms_client._writing import TEMPORARY, temporary
from lollms_client.errors import OutsideWorkspaceError, PathError

__all__ = ["Entry", "Workspace", "home"]

StrPath: TypeAlias = "str | os.PathLike[str]"

_MAX_LINKS = 40  # as many as Linux follows in one path
_MAX_DEPTH = 255  # folders below the root; each costs a descriptor while it is walked
_MAX_NAME = 16_384  # characters of a whole path; the kernel says what it thinks of each name
_RETRIES = 20  # how often an opening starts anew because a link appeared under its hands
_FOLDER = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_CLOEXEC  # to pass through
_LISTING = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC  # to see what is in it
_KINDS = {
    st.S_IFREG: "file",
    st.S_IFDIR: "folder",
    st.S_IFLNK: "link",
    st.S_IFIFO: "pipe",
    st.S_IFSOCK: "socket",
    st.S_IFCHR: "device",
    st.S_IFBLK: "device",
}


def home(*parts: str) -> Path:
    """The folder below which everything of ours lives, or a path below it.

    Args:
        parts: Names below the home folder, for example `home("models")`.

    Returns:
        `$LOLLMS_HOME` where it is set, else `~/.lollms`, joined with `parts`. Nothing is created.
    """
    root = os.environ.get("LOLLMS_HOME")
    return Path(root).expanduser().joinpath(*parts) if root else Path.home().joinpath(".lollms", *parts)


class Entry(NamedTuple):
    """One thing in a workspace.

    Attributes:
        path: Its path below the workspace, with "/" between names.
        kind: "file", "folder", "link", "pipe", "socket" or "device".
        size: Bytes (of the link itself for a link).
        modified: Seconds since 1970.
    """

    path: str
    kind: str
    size: int
    modified: float


class _Place:
    """An open folder and a name in it. Leaving the `with` closes the folder and gives errors the whole path."""

    __slots__ = ("descriptor", "name", "path")

    def __init__(self, descriptor: int, name: str, path: str) -> None:
        self.descriptor, self.name, self.path = descriptor, name, path

    def __enter__(self) -> _Place:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        os.close(self.descriptor)
        if isinstance(error, OSError) and error.filename == self.name:
            error.filename = self.path

    def stat(self) -> os.stat_result:
        return os.stat(self.name, dir_fd=self.descriptor, follow_symlinks=False)

    def found(self) -> os.stat_result | None:
        """What stands there, None where nothing does."""
        try:
            return self.stat()
        except FileNotFoundError:
            return None

    def mode_to_keep(self) -> int | None:
        """The mode of the file that a writing replaces, None for a new one. Refuses what may not be replaced."""
        found = self.found()
        if found is None:
            return None
        _demand_file(found, self.path)
        if not found.st_mode & 0o222:
            raise PermissionError(errno.EACCES, "The file is read-only", self.path)
        return st.S_IMODE(found.st_mode)


class Workspace:
    """A folder that nothing leaves.

    Paths are relative to it; absolute ones count when they lead into it, in whatever spelling. `..` and links are fine as long as
    they stay inside. Nothing is expanded (`~`, `$HOME`), and a backslash is a character. Use it as a context manager.

    Args:
        root: The folder; a link to a folder will do. Relative to the working directory of the calling thread.
        create: Make the folder where it is missing.
        keeps: Whether repositories and Python environments in it stay as they are, because other programs trust them.

    Raises:
        OSError: The folder cannot be opened.

    Its methods raise OutsideWorkspaceError for a path that leads outside, PathError for a name that can be none, for pipes,
    sockets and devices, and for a change of what is kept, and OSError as the system does, with the path as the caller gave it.

    Source: tool guide §10.1, CONTRACT A10.
    """

    def __init__(self, root: StrPath = ".", *, create: bool = False, keeps: bool = True) -> None:
        self._keeps = keeps
        folder = Path(root).absolute()
        if create:
            folder.mkdir(parents=True, exist_ok=True)
        self.root = str(folder)
        self._fd = os.open(self.root, _FOLDER)
        self._identity = identity(os.fstat(self._fd))
        self._ours = _home_beneath(self.root)
        watch(self.root)

    def close(self) -> None:
        """Let go of the folder. May be called twice."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def __enter__(self) -> Workspace:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_fd", -1) >= 0:
            self.close()

    # -- reading -----------------------------------------------------------------------------------------------------------

    def stat(self, path: StrPath, *, follow: bool = True) -> os.stat_result:
        """What stands at `path`; with `follow` a link counts as what it leads to."""
        with self._at(path, follow=follow) as place:
            return place.stat()

    def kind(self, path: StrPath, *, follow: bool = True) -> str:
        """The kind of what stands at `path` (see Entry), or "" where nothing does."""
        try:
            return _kind(self.stat(path, follow=follow).st_mode)
        except (FileNotFoundError, NotADirectoryError):
            return ""

    def open(
        self,
        path: StrPath,
        mode: str = "r",
        *,
        encoding: str | None = None,
        errors: str | None = None,
        newline: str | None = None,
        parents: bool = False,
    ) -> IO[Any]:
        """Open a regular file, as the built-in `open` does. Never blocks on a pipe and never opens a device.

        Args:
            path: The file.
            mode: As for the built-in `open`; "w" empties the file in place (`write` replaces it at once instead).
            encoding: As for the built-in `open`.
            errors: As for the built-in `open`.
            newline: As for the built-in `open`.
            parents: Make missing folders on the way.

        Returns:
            The open file.

        Raises:
            OutsideWorkspaceError: The path leads outside.
            PathError: It names no regular file.
        """
        return open(
            _name(path),
            mode,
            encoding=encoding,
            errors=errors,
            newline=newline,
            opener=lambda name, flags: self.descriptor(name, flags, parents=parents),
        )

    def descriptor(self, path: StrPath, flags: int = os.O_RDONLY, *, parents: bool = False) -> int:
        """Open a regular file and return its descriptor, which the caller closes.

        Args:
            path: The file.
            flags: Flags of `os.open`; not following a link that appears late, and not blocking, are added.
            parents: Make missing folders on the way.
        """
        flags |= os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        name = _name(path)
        reach = self._to_change if flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC) else self._at
        for _ in range(_RETRIES):
            with reach(name, create=parents) as place:
                found = place.found()
                if found is not None and not st.S_ISLNK(found.st_mode):
                    _demand_file(found, name)
                try:
                    descriptor = os.open(place.name, flags, 0o666, dir_fd=place.descriptor)
                except OSError as error:
                    if error.errno == errno.ELOOP:
                        continue
                    raise
            # What was opened need not be what was looked at.
            about = os.fstat(descriptor)
            if st.S_ISREG(about.st_mode):
                return descriptor
            os.close(descriptor)
            if not st.S_ISLNK(about.st_mode):
                _demand_file(about, name)
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), name)

    def scan(self, path: StrPath = ".") -> list[Entry]:
        """What stands in a folder, sorted by name."""
        folder = self._folder(path)
        try:
            return _entries(folder, "")
        finally:
            os.close(folder)

    def walk(self, path: StrPath = ".", *, skip: Collection[str] = (), depth: int = _MAX_DEPTH) -> Iterator[Entry]:
        """Everything below a folder, each folder before what it holds, sorted by name. Links are shown and not followed.

        Args:
            path: Where to begin; the paths of the entries are relative to it.
            skip: Names of folders that are left out.
            depth: How many levels down, 1 for the folder itself.
        """
        folders = [self._folder(path)]
        try:
            pending = [iter(_entries(folders[0], ""))]
            while pending:
                entry = next(pending[-1], None)
                if entry is None:
                    pending.pop()
                    os.close(folders.pop())
                elif entry.kind != "folder":
                    yield entry
                elif (name := entry.path.rpartition("/")[2]) not in skip:
                    yield entry
                    inner = _enter_to_list(name, folders[-1]) if len(pending) < min(depth, _MAX_DEPTH) else -1
                    if inner >= 0 and identity(os.fstat(inner)) == self._ours:
                        os.close(inner)
                    elif inner >= 0:
                        folders.append(inner)
                        pending.append(iter(_entries(inner, entry.path + "/")))
        finally:
            for descriptor in folders:
                os.close(descriptor)

    # -- changing ----------------------------------------------------------------------------------------------------------

    def write(self, path: StrPath, data: bytes, *, parents: bool = True) -> bool:
        """Write a whole file at once: readers see the old content or the new, never a part. The mode of an old file is kept.

        Where the process is killed in the midst, what it began stays as a hidden file, which the next writing of this file
        removes (`clear_temporary` does so too).

        Args:
            path: The file; a link that stays inside is followed.
            data: The whole content.
            parents: Make missing folders on the way.

        Returns:
            True where the file is new.
        """
        with self._to_change(path, create=parents) as place:
            mode = place.mode_to_keep()
            fresh, descriptor = temporary(place.descriptor, place.name)
            with os.fdopen(descriptor, "wb") as file:  # which keeps it locked until it has the name that it is for
                try:
                    file.write(data)
                    file.flush()
                    if mode is not None:
                        os.fchmod(descriptor, mode)
                    os.rename(fresh, place.name, src_dir_fd=place.descriptor, dst_dir_fd=place.descriptor)
                except BaseException:
                    with contextlib.suppress(FileNotFoundError):
                        os.unlink(fresh, dir_fd=place.descriptor)
                    raise
            return mode is None

    def mkdir(self, path: StrPath, *, parents: bool = True) -> bool:
        """Make a folder. Returns False where it was there already."""
        with self._to_change(path, create=parents) as place:
            try:
                os.mkdir(place.name, dir_fd=place.descriptor)
            except FileExistsError:
                if not st.S_ISDIR(place.stat().st_mode):
                    raise
                return False
            return True

    def rename(self, source: StrPath, destination: StrPath, *, parents: bool = True) -> None:
        """Move a file, a folder or a link to a name that is free.

        Raises:
            FileExistsError: Something stands at the destination.
        """
        self.refuse_root(source)
        self._refuse_folder_of_ours(source)
        with self._to_change(source, follow=False) as old:
            old.stat()
            with self._to_change(destination, follow=False, create=parents) as new:
                if new.found() is not None:
                    raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), os.fspath(destination))
                os.rename(old.name, new.name, src_dir_fd=old.descriptor, dst_dir_fd=new.descriptor)

    def remove(self, path: StrPath) -> None:
        """Delete a file, a folder with everything in it, or a link (never what it leads to)."""
        self.refuse_root(path)
        self._refuse_folder_of_ours(path)
        with self._to_change(path, follow=False) as place:
            if st.S_ISDIR(place.stat().st_mode):
                import shutil

                shutil.rmtree(place.name, dir_fd=place.descriptor)
            else:
                os.unlink(place.name, dir_fd=place.descriptor)

    def refuse_kept(self, path: StrPath) -> None:
        """Raise where `path` may not be changed: PathError for what is kept, OutsideWorkspaceError for what no tool reaches."""
        with contextlib.suppress(FileNotFoundError), self._to_change(path):
            pass

    def refuse_root(self, path: StrPath) -> None:
        """Raise PathError where `path` is the workspace itself, which is neither moved nor deleted."""
        with self._at(path, follow=False) as place:
            found = place.found()
            if found is not None and identity(found) == self._identity:
                raise PathError(f"{_name(path)!r} is the workspace itself, which cannot be moved or deleted.")

    def _refuse_folder_of_ours(self, path: StrPath) -> None:
        """Refuse to move or delete a folder in which our home or our records lie: they are known by their paths."""
        if not self._keeps or self.kind(path, follow=False) != "folder":
            return
        folder = self.resolve(path)
        if (self._ours is not None and home().resolve().is_relative_to(folder)) or any(
            map(os.path.lexists, records_beneath(str(folder)))
        ):
            raise PathError(f"{_name(path)!r} holds {RECORDS}, so it stays where it is.")

    # -- naming ------------------------------------------------------------------------------------------------------------

    def resolve(self, path: StrPath) -> Path:
        """The absolute path, links resolved, for an interface that takes nothing but a path.

        It is what holds now; whoever opens it later opens what stands there then. Use `open` where you can. What does not exist
        is resolved as far as it does.

        Raises:
            OutsideWorkspaceError: The path leads outside.
        """
        root = Path(self.root).resolve()
        found = root.joinpath(*self._parts(path)).resolve()
        if not found.is_relative_to(root):
            raise _outside(_name(path))
        if self._ours is not None and found.is_relative_to(home().resolve()):
            raise _private(_name(path))
        return found

    # -- the walk ----------------------------------------------------------------------------------------------------------

    def _at(self, path: StrPath, *, follow: bool = True, create: bool = False) -> _Place:
        """The folder that holds `path`, open, and the name in it.

        Args:
            path: As the caller gave it.
            follow: Follow a link that stands at the last name, so that the place returned holds none.
            create: Make missing folders on the way.
        """
        place = self._reach(path, follow=follow, create=create)
        if self._ours is not None:
            found = place.found()
            if (found is not None and identity(found) == self._ours) or is_beneath(place.descriptor, self._ours, self._identity):
                os.close(place.descriptor)
                raise _private(place.path)
        return place

    def _reach(self, path: StrPath, *, follow: bool, create: bool) -> _Place:
        """The same, wherever it leads below the root."""
        name = _name(path)
        parts = self._parts(name)
        if create:
            _refuse_climbing(parts, name)
        folder = self._quick(parts)
        if folder >= 0:
            if not follow or _link_target(folder, parts[-1]) is None:
                return _Place(folder, parts[-1], name)
            os.close(folder)
        try:
            return self._walk(name, parts, follow=follow, create=create)
        except OSError as error:
            if not isinstance(error, OutsideWorkspaceError):
                error.filename = name
            raise

    def _to_change(self, path: StrPath, *, follow: bool = True, create: bool = False) -> _Place:
        """As `_at`, where what stands there is about to be changed.

        Raises:
            PathError: It is kept as it is.
        """
        name = _name(path)
        if self._keeps and GIT in map(str.casefold, self._parts(name)):  # before a folder is made on the way
            raise _kept(name, "a repository")
        place = self._at(name, follow=follow, create=create)
        try:
            self._demand_free(place.descriptor, place.name, name)
        except BaseException:
            os.close(place.descriptor)
            raise
        return place

    def _demand_free(self, folder: int, name: str, path: str) -> None:
        """Refuse to change a name in an open folder where that is kept."""
        if not self._keeps:
            return
        if owner := belongs_to(folder, name, self._identity):
            raise _kept(path, owner)

    def _make_folder(self, folder: int, name: str, path: str) -> None:
        """Make a folder on the way to something."""
        if self._ours is not None and is_beneath(folder, self._ours, self._identity):
            raise _private(path)
        self._demand_free(folder, name, path)
        with contextlib.suppress(FileExistsError):
            os.mkdir(name, dir_fd=folder)

    def _quick(self, parts: list[str]) -> int:
        """The folder of a path by one system call, -1 where the walk has to do it."""
        if not parts or parts[-1] == "..":
            return -1
        if len(parts) == 1:
            return os.dup(self._fd)
        beneath = _beneath()
        if beneath is None:
            return -1
        try:
            return beneath(self._fd, "/".join(parts[:-1]))
        except OSError:
            return -1  # missing, a link to an absolute path, a race: the walk finds out which

    def _walk(self, path: str, parts: list[str], *, follow: bool, create: bool) -> _Place:
        """Go down name by name from the root, holding every folder on the way so that `..` is a step back and never a look up."""
        pending, links = parts[::-1], 0
        trail = [(os.dup(self._fd), ".")]
        try:
            while pending:
                name = pending.pop()
                here = trail[-1][0]
                if name == "..":
                    if len(trail) == 1:
                        raise _outside(path)
                    os.close(trail.pop()[0])
                    continue
                if pending:
                    target = _enter(trail, name, functools.partial(self._make_folder, path=path) if create else None)
                else:
                    target = _link_target(here, name) if follow else None
                    if target is None:
                        return _Place(os.dup(here), name, path)
                if target is not None:
                    links += 1
                    if links > _MAX_LINKS:
                        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
                    pending.extend(reversed(self._link_parts(target, trail, path)))
            # The path ended in `..`, in nothing, or in a link to such: it names the folder that was reached last.
            name = "."
            if len(trail) > 1:
                descriptor, name = trail.pop()
                os.close(descriptor)
            return _Place(os.dup(trail[-1][0]), name, path)
        finally:
            for descriptor, _ in trail:
                os.close(descriptor)

    def _link_parts(self, target: str, trail: list[tuple[int, str]], path: str) -> list[str]:
        """The names that a link stands for; one that is absolute begins at the root again, if it leads there."""
        if not target.startswith("/"):
            return _split(target)
        below = self._below(target)
        if below is None:
            raise _outside(path)
        while len(trail) > 1:
            os.close(trail.pop()[0])
        return _split(below)

    def _parts(self, path: StrPath) -> list[str]:
        """The names of a path below the root."""
        name = _name(path)
        if not name.startswith("/"):
            return _split(name)
        below = self._below(name)
        if below is None:
            raise _outside(name)
        return _split(below)

    def _below(self, absolute: str) -> str | None:
        """What follows the root in an absolute path, None where the root is not on its way.

        The root is recognised by identity, so every spelling of it counts. Only names come out of this: they are walked from the
        root's own descriptor, so nothing depends on what is on that way later.
        """
        head, tail = absolute, ""
        while True:
            try:
                if identity(Path(head or "/").stat()) == self._identity:
                    return tail
            except OSError:
                pass
            if not head:
                return None
            head, _, last = head.rpartition("/")
            tail = f"{last}/{tail}"

    def _folder(self, path: StrPath) -> int:
        """A descriptor of a folder, to list it."""
        with self._at(path) as place:
            return os.open(place.name, _LISTING, dir_fd=place.descriptor)


def _enter(trail: list[tuple[int, str]], name: str, make: Callable[[int, str], None] | None) -> str | None:
    """Step into a folder, which `make` makes where it is missing, or return where the link of that name leads."""
    if len(trail) > _MAX_DEPTH:
        raise OSError(errno.ENAMETOOLONG, f"The path goes down more than {_MAX_DEPTH} folders")
    here = trail[-1][0]
    try:
        inner = os.open(name, _FOLDER | os.O_NOFOLLOW, dir_fd=here)
    except FileNotFoundError:
        if make is None:
            raise
        make(here, name)
        inner = os.open(name, _FOLDER | os.O_NOFOLLOW, dir_fd=here)
    except OSError as error:
        # A link, by the name that this system has for it under these flags.
        target = _link_target(here, name) if error.errno in (errno.ENOTDIR, errno.ELOOP) else None
        if target is None:
            raise
        return target
    trail.append((inner, name))
    return None


def _link_target(folder: int, name: str) -> str | None:
    """Where the link of that name leads, None for anything that is no link."""
    try:
        return os.readlink(name, dir_fd=folder)
    except OSError:
        return None


def _enter_to_list(name: str, folder: int) -> int:
    """A descriptor of a folder in an open one, -1 where it is gone, no longer a folder, or closed to us."""
    try:
        return os.open(name, _LISTING, dir_fd=folder)
    except OSError:
        return -1


def _entries(folder: int, prefix: str) -> list[Entry]:
    """What an open folder holds, sorted by name."""
    found = []
    with os.scandir(folder) as items:
        for item in items:
            try:
                about = item.stat(follow_symlinks=False)
            except OSError:
                continue  # gone since it was listed
            if not item.name.startswith(TEMPORARY):
                found.append(Entry(prefix + item.name, _kind(about.st_mode), about.st_size, about.st_mtime))
    found.sort()
    return found


def _kind(mode: int) -> str:
    return _KINDS.get(st.S_IFMT(mode), "device")


def _demand_file(about: os.stat_result, path: str) -> None:
    kind = _kind(about.st_mode)
    if kind == "folder":
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    if kind != "file":
        raise PathError(f"{path!r} is a {kind}, not a file, and is not opened.")


def _name(path: StrPath) -> str:
    """A path as text that the system can take."""
    try:
        name = os.fspath(path)
        if not isinstance(name, str):
            raise TypeError
        os.fsencode(name)
    except TypeError:
        raise PathError(f"A path is text, not {type(path).__name__}.") from None
    except UnicodeEncodeError:
        raise PathError(f"The path {name!r} holds characters that no file name can have.") from None
    if not name:
        raise PathError("The path is empty. Write '.' for the workspace itself.")
    if "\0" in name:
        raise PathError(f"The path {name!r} holds a NUL character.")
    if len(name) > _MAX_NAME:
        raise PathError(f"The path is {len(name):,} characters long; at most {_MAX_NAME:,} are taken.")
    return name


def _split(path: str) -> list[str]:
    return [part for part in path.split("/") if part not in ("", ".")]


def _refuse_climbing(parts: list[str], path: str) -> None:
    """Refuse a path that climbs out before a folder is made on its way."""
    depth = 0
    for part in parts:
        depth += -1 if part == ".." else 1
        if depth < 0:
            raise _outside(path)


def _home_beneath(root: str) -> tuple[int, int] | None:
    """Our own home folder, where it lies in a workspace: its settings hold keys, and its stores what persons decided."""
    try:
        place = os.path.realpath(home())
        inside = f"{place}/".startswith(f"{os.path.realpath(root).rstrip('/')}/")
        return identity(Path(place).stat()) if inside else None
    except OSError:
        return None


def _private(path: str) -> OutsideWorkspaceError:
    return OutsideWorkspaceError(f"{path!r} is this library's own, where keys and records of turns lie; no tool reaches it.")


def _kept(path: str, owner: str) -> PathError:
    return PathError(f"{path!r} belongs to {owner}, which others trust: only its own programs change it.")


def _outside(path: str) -> OutsideWorkspaceError:
    return OutsideWorkspaceError(f"Access outside the workspace is forbidden: {path}")


_Beneath: TypeAlias = "Callable[[int, str], int]"
_beneath_found: list[_Beneath | None] = []


def _beneath() -> _Beneath | None:
    """The kernel's own resolving beneath a descriptor, None where there is none (Linux before 5.6, other systems)."""
    if not _beneath_found:
        _beneath_found.append(_load_openat2() if sys.platform == "linux" else None)
    return _beneath_found[0]


def _load_openat2() -> _Beneath | None:
    """`openat2` for folders: beneath the descriptor, no magic links of /proc. Source: openat2(2)."""
    import ctypes

    syscall = ctypes.CDLL(None, use_errno=True).syscall
    syscall.restype = ctypes.c_long
    syscall.argtypes = [ctypes.c_long, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_size_t]
    number, beneath, no_magic_links = 437, 0x08, 0x02
    how = (ctypes.c_uint64 * 3)(_FOLDER, 0, beneath | no_magic_links)

    def openat2(folder: int, path: str) -> int:
        descriptor = int(syscall(number, folder, os.fsencode(path), how, ctypes.sizeof(how)))
        if descriptor < 0:
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code), path)
        return descriptor

    here = os.open("/", _FOLDER)
    try:
        os.close(openat2(here, "."))
    except OSError:
        return None
    finally:
        os.close(here)
    return openat2
