"""What runs in the child before the confined program: it takes away, step by step, what the policy does not allow.

It runs as a script of its own (`python -I -S inside.py`), before any code of the confined program, with the standard library
alone. It reads the order from a descriptor, sets the confinement up, hands the supervisor the notification
descriptor of the filter, and becomes the program. It never goes on where a step fails: it says which one, and ends.

Source: landlock(7), seccomp_unotify(2), user_namespaces(7), pid_namespaces(7), mount_namespaces(7).
"""

from __future__ import annotations

# These two without what stands around them, which would take most of the launcher's time.
import _signal as signal  # type: ignore[import-not-found]
import _socket as socket
import ctypes
import errno
import marshal
import os
import resource
import struct
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_SET_DUMPABLE, _SET_PDEATHSIG, _SET_NO_NEW_PRIVS, _SET_CHILD_SUBREAPER = 4, 1, 38, 36
_NEWNS, _NEWCGROUP, _NEWUTS, _NEWIPC, _NEWUSER, _NEWPID, _NEWNET = (
    0x00020000, 0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000,
)  # fmt: skip
_MS_NOSUID, _MS_NODEV, _MS_NOEXEC, _MS_BIND, _MS_REC, _MS_PRIVATE = 2, 4, 8, 4096, 16384, 1 << 18
_SYS_MOUNT_SETATTR, _AT_RECURSIVE, _AT_EMPTY_PATH, _ATTR_RDONLY, _ATTR_NOSUID = 442, 0x8000, 0x1000, 1, 2
_SYS_OPEN_TREE, _OPEN_TREE_CLONE, _SYS_MOVE_MOUNT, _MOVE_BY_DESCRIPTORS = 428, 1, 429, 0x44
_SYS_LANDLOCK, _SYS_SECCOMP = 444, {"x86_64": 317, "aarch64": 277}
_SECCOMP_SET_MODE_FILTER, _SECCOMP_NEW_LISTENER = 1, 8
_SET_SECUREBITS, _CAPBSET_DROP, _ROOT_IS_NOBODY, _CAPABILITY_VERSION = 28, 24, 0xEF, 0x20080522
_EXIT_FAILED = 125
_LOOK = 0.02  # seconds between two looks at what cannot be waited for together

# Landlock's rights (linux/landlock.h), in the order of their bits.
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1, 2, 4, 8
_ALL_RIGHTS = {1: 0x1FFF, 2: 0x3FFF, 3: 0x7FFF, 4: 0x7FFF, 5: 0xFFFF}
_FILE_RIGHTS = _EXECUTE | _WRITE_FILE | _READ_FILE | (1 << 14) | (1 << 15)
_IOCTL_DEV = 1 << 15

libc = ctypes.CDLL(None, use_errno=True)


def _check(done: int, what: str) -> int:
    """What the kernel answered, or an error that names the step which could not be taken."""
    if done < 0:
        raise OSError(ctypes.get_errno(), f"{what}: {os.strerror(ctypes.get_errno())}")
    return done


# ---- namespaces ----


def enter_namespaces(wanted: int) -> None:
    """Enters namespaces of our own, as an ordinary user in all of them."""
    uid, gid = os.getuid(), os.getgid()
    _check(libc.unshare(_NEWUSER | wanted), "namespaces")
    for name, text in (("setgroups", "deny"), ("uid_map", f"1000 {uid} 1"), ("gid_map", f"1000 {gid} 1")):
        with open(f"/proc/self/{name}", "w", encoding="ascii") as file:
            file.write(text)


def become_init(order: dict[str, Any]) -> None:
    """Returns in the program's process; with the namespace's first process, which stays, ends everything in there."""
    child = os.fork()
    if child:  # outside: waits for the first process of the namespace
        os.close(order["status_pipe"])
        os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) & 0xFF)
    libc.prctl(_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getpid() != 1:
        os._exit(_EXIT_FAILED)
    stay_above(order)


def stay_above(order: dict[str, Any]) -> None:
    """Returns in a process of its own; this one reaps what ends there, and tells how the program ended and who outlived it."""
    libc.prctl(_SET_DUMPABLE, 0, 0, 0, 0)  # no process below reads or writes the memory of this one
    program = os.fork()
    if program == 0:
        libc.prctl(_SET_DUMPABLE, 1, 0, 0, 0)
        os.close(order["status_pipe"])
        libc.prctl(_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        os.setsid()
        return
    keep = order["status_pipe"]
    os.closerange(3, keep)
    os.closerange(keep + 1, 1024)
    ended = status = 0
    while ended != program:
        ended, status = os.wait()
    left = _end_those_below()
    os.write(keep, struct.pack("=ii", status, left))
    os._exit(0)


def stay_beside(order: dict[str, Any]) -> None:
    """The same where no process adopts orphans and none is tied to its parent's life: its group is all that there is."""
    import select

    program = os.fork()
    if program == 0:
        os.close(order["status_pipe"])
        return
    low, high = sorted((order["status_pipe"], order["listener_pipe"]))
    os.closerange(3, low)
    os.closerange(low + 1, high)
    os.closerange(high + 1, 1024)
    ended = status = 0
    while not ended:
        if select.select([order["listener_pipe"]], [], [], _LOOK)[0]:  # its other end is closed: whoever started this is gone
            os.killpg(0, signal.SIGKILL)
        ended, status = os.waitpid(program, os.WNOHANG)
    os.write(order["status_pipe"], struct.pack("=ii", status, 0))
    os.killpg(0, signal.SIGKILL)


def _end_those_below() -> int:
    """Ends every process that came below this one and is still there; how many there were."""
    left: set[int] = set()
    while True:
        try:
            with open(f"/proc/self/task/{os.getpid()}/children", encoding="ascii") as file:
                now = [int(pid) for pid in file.read().split()]
        except OSError:
            now = []
        left.update(now)
        for pid in now:
            os.kill(pid, signal.SIGKILL)
        try:
            while True:
                os.wait() if now else os.waitpid(-1, os.WNOHANG)
                if not now:
                    return len(left)
                now.pop()
        except ChildProcessError:
            return len(left)


def mount_view(order: dict[str, Any]) -> None:
    """A view of the files in which other processes are not to be seen and what is protected is not to be changed."""

    def mount(source: str, target: str, kind: str, flags: int) -> int:
        done: int = libc.mount(source.encode(), target.encode(), kind.encode() or None, flags, None)
        return done

    _check(mount("none", "/", "", _MS_REC | _MS_PRIVATE), "mounts")
    if order["own_proc"]:
        _check(mount("proc", "/proc", "proc", _MS_NOSUID | _MS_NODEV | _MS_NOEXEC), "a view of processes")
        _bound_processes(order["caps"]["processes"])
    for path in order["writable"]:
        _check(mount(path, path, "", _MS_BIND | _MS_REC), f"a writable {path}")
    _set_attributes("/", _ATTR_RDONLY | _ATTR_NOSUID, 0)  # file rules say nothing about modes, owners and times
    for path in order["writable"]:
        _set_attributes(path, 0, _ATTR_RDONLY)
    for path, device, inode, *_ in order["pinned"]:
        cover(path, device, inode, 0)
    for path, device, inode, *_ in order["frozen"]:
        cover(path, device, inode, _ATTR_RDONLY)
    for path, device, inode, *_ in order["hidden"]:
        cover(path, device, inode, _ATTR_RDONLY, order["nothing"])


def cover(path: str, device: int, inode: int, attributes: int, other: str = "") -> None:
    """Mounts a thing over itself: so it cannot be moved, nor changed where it is read only. It may be moved at this moment.

    `other` is an empty folder to be seen instead.
    """
    at = os.open(path, os.O_PATH | os.O_CLOEXEC | os.O_NOFOLLOW)
    found = os.fstat(at)
    if (found.st_dev, found.st_ino) != (device, inode):
        raise OSError(errno.ESTALE, "another program changed the workspace at this moment", path)
    flags = ctypes.c_uint(_AT_EMPTY_PATH | _AT_RECURSIVE | _OPEN_TREE_CLONE)
    source = os.open(other, os.O_PATH | os.O_CLOEXEC) if other else at
    view = _check(libc.syscall(_SYS_OPEN_TREE, ctypes.c_int(source), b"", flags), f"a view of {path}")
    _set_attributes("", attributes, 0, view)
    moved = libc.syscall(_SYS_MOVE_MOUNT, ctypes.c_int(view), b"", ctypes.c_int(at), b"", ctypes.c_uint(_MOVE_BY_DESCRIPTORS))
    _check(moved, f"a mount at {path}")
    os.close(view)
    os.close(at)


def check_cover(order: dict[str, Any]) -> None:
    """Where somebody else mounted by path: whether it was these very things."""
    for path, *known in (*order["pinned"], *order["frozen"]):
        found, above = os.lstat(path), os.lstat(os.path.dirname(path))
        if [found.st_dev, found.st_ino, above.st_dev, above.st_ino] != known:
            raise OSError(errno.ESTALE, "another program changed the workspace at this moment", path)
    for path, *_ in (*order["frozen"], *order["hidden"]):
        if not os.statvfs(path).f_flag & os.ST_RDONLY:
            raise OSError(errno.ESTALE, "another program changed the workspace at this moment", path)


def _set_attributes(path: str, more: int, less: int, at: int = -100) -> None:
    """Changes a mount and all below it."""
    attributes = struct.pack("=QQQQ", more, less, 0, 0)
    flags = ctypes.c_uint(_AT_RECURSIVE | (_AT_EMPTY_PATH if at >= 0 else 0))
    size = ctypes.c_size_t(len(attributes))
    _check(libc.syscall(_SYS_MOUNT_SETATTR, ctypes.c_int(at), path.encode(), flags, attributes, size), f"a mount at {path}")


def _bound_processes(most: int) -> None:
    """Bounds the processes of the namespace for the super-user, whom no other limit binds (from Linux 6.14 on)."""
    try:
        with open("/proc/sys/kernel/pid_max", "w", encoding="ascii") as file:
            file.write(str(max(most, 301)))
    except OSError:
        pass


# ---- files ----


def restrict_files(order: dict[str, Any]) -> None:
    """Landlock: what is not granted here cannot be opened, whatever its path, link or descriptor."""
    syscall = libc.syscall
    abi = syscall(_SYS_LANDLOCK, None, ctypes.c_size_t(0), ctypes.c_uint32(1))
    _check(abi, "file rules")
    every = _ALL_RIGHTS.get(abi, _ALL_RIGHTS[5])
    attributes = struct.pack("=QQQ", every, 0, 0x3 if abi >= 6 else 0)
    size = 24 if abi >= 6 else 16 if abi >= 4 else 8
    ruleset = _check(syscall(_SYS_LANDLOCK, attributes, ctypes.c_size_t(size), ctypes.c_uint32(0)), "file rules")
    read = (_EXECUTE | _READ_FILE | _READ_DIR) & every
    plain = every & ~_IOCTL_DEV
    for path, rights in (
        *((p, read) for p in order["readable"]),
        *((p, (_READ_FILE | _READ_DIR) & every) for p in order["seen"]),
        *((p, plain) for p in order["writable"]),
        *((p, (_READ_FILE | _WRITE_FILE) & every) for p in order["devices"]),
    ):
        _grant(ruleset, path, rights)
    _check(syscall(_SYS_LANDLOCK + 2, ctypes.c_int(ruleset), ctypes.c_uint32(0)), "file rules")
    os.close(ruleset)


def _grant(ruleset: int, path: str, rights: int) -> None:
    try:
        folder = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return  # what is not there needs no grant
    try:
        if not os.path.isdir(f"/proc/self/fd/{folder}"):
            rights &= _FILE_RIGHTS
        rule = struct.pack("=Qi", rights, folder)
        done = libc.syscall(_SYS_LANDLOCK + 1, ctypes.c_int(ruleset), ctypes.c_int(1), rule, ctypes.c_uint32(0))
        _check(done, f"a file rule for {path}")
    finally:
        os.close(folder)


# ---- calls ----


def limit(order: dict[str, Any]) -> None:
    """What holds for each process by itself."""
    caps = order["caps"]
    for name, value in (
        (resource.RLIMIT_CPU, caps["cpu_seconds"]),
        (resource.RLIMIT_FSIZE, caps["file_bytes"]),
        (resource.RLIMIT_NOFILE, caps["open_files"]),
        (resource.RLIMIT_CORE, 1),  # unlike 0, it also keeps a dump from a handler outside
        *(((resource.RLIMIT_AS, caps["memory_bytes"]),) if order["limit_memory"] else ()),
        *(((resource.RLIMIT_NPROC, caps["processes"]),) if order["limit_processes"] else ()),
    ):
        hard = resource.getrlimit(name)[1]
        least = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(name, (least, least))


def drop_capabilities() -> None:
    """Takes what makes root more than the owner of its files, for good; in a namespace of its own there is nothing of it."""
    if os.getuid() == 0:
        _check(libc.prctl(_SET_SECUREBITS, _ROOT_IS_NOBODY, 0, 0, 0), "root without its rights")
    for capability in range(64):
        libc.prctl(_CAPBSET_DROP, capability, 0, 0, 0)
    _check(libc.capset(struct.pack("=Ii", _CAPABILITY_VERSION, 0), bytes(24)), "no capabilities")


def filter_calls(order: dict[str, Any]) -> None:
    """Installs the filter, and sends the descriptor on which the kernel tells of held calls to the supervisor."""
    code = bytes.fromhex(order["filter"])
    instructions = ctypes.create_string_buffer(code, len(code))
    program = struct.pack("=HxxxxxxQ", len(code) // 8, ctypes.addressof(instructions))
    number = _SYS_SECCOMP[os.uname().machine]
    listener = _check(
        libc.syscall(
            number, ctypes.c_uint(_SECCOMP_SET_MODE_FILTER), ctypes.c_uint(_SECCOMP_NEW_LISTENER), ctypes.c_char_p(program)
        ),
        "the filter of system calls",
    )
    pipe = socket.socket(fileno=order["listener_pipe"])
    pipe.sendmsg([b"L"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, struct.pack("i", listener))])
    os.close(listener)
    pipe.recv(1)  # the supervisor listens
    pipe.detach()


def confine_outside(order: dict[str, Any]) -> None:
    """What other processes, files and networks the program is to have none of: whatever needs to be the first step."""
    libc.prctl(_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if order["namespaces"]:
        enter_namespaces(order["namespaces"])
        if order["namespaces"] & _NEWPID:
            become_init(order)
        if order["namespaces"] & _NEWNS:
            mount_view(order)
    else:
        check_cover(order)
    if not order["namespaces"] & _NEWPID:
        libc.prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        stay_above(order)


def confine_calls(order: dict[str, Any]) -> None:
    """What the program may do, in steps of which none can be taken back."""
    if order["filter"]:
        drop_capabilities()
    _check(libc.prctl(_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no new privileges")
    if order["file_rules"]:
        restrict_files(order)


def main() -> None:
    """Reads the order, confines this process, and becomes the program."""
    source = int(sys.argv[1])
    with os.fdopen(source, "rb") as file:
        order = marshal.load(file)  # noqa: S302 - the order is our own parent's
    os.set_inheritable(order["listener_pipe"], False)  # so that nobody but this launcher can say that it failed
    try:
        if order["linux"]:
            confine_outside(order)
        else:
            stay_beside(order)
        os.chdir(order["cwd"])
        limit(order)
        if order["linux"]:
            confine_calls(order)
        for number in (signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL if number == signal.SIGPIPE else signal.SIG_IGN)
        if order["filter"]:
            filter_calls(order)
        os.execve(order["argv"][0], order["argv"], order["environment"])  # noqa: S606 - what this file is for
    except OSError as error:
        about = f" ({error.filename})" if error.filename else ""
        os.write(order["listener_pipe"], f"F{error.strerror}{about}".encode())
        os._exit(_EXIT_FAILED)


if __name__ == "__main__":
    main()
