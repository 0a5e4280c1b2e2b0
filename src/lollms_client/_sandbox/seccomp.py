"""A filter for system calls, as a classic BPF program: what is refused, and what is put before the supervisor.

Allowed is what is not named. Refused is what reaches past the file rules and the namespaces (other processes, mounts, keys, the
kernel itself, kernel-side queues that would make calls unseen). Put before the supervisor are program starts, new processes and
sockets, where the policy does not simply allow them: the kernel holds the caller until the supervisor has answered.

Source: seccomp(2), seccomp_unotify(2), the kernel's Documentation/userspace-api/seccomp_filter.rst; numbers of the calls from
the kernel's tables for x86_64 and for arm64 (the generic table).
"""

from __future__ import annotations

import platform
import struct

__all__ = ["CLONE", "PROCESS_CALLS", "PROGRAM_CALLS", "SOCKET", "names_by_number", "program"]

_X86_64 = {
    "execve": 59, "execveat": 322, "fork": 57, "vfork": 58, "clone": 56, "clone3": 435, "socket": 41, "ioctl": 16,
    "socketpair": 53, "inotify_add_watch": 254, "open_tree_attr": 467, "file_setattr": 469,
    "ptrace": 101, "process_vm_readv": 310, "process_vm_writev": 311, "kcmp": 312, "pidfd_getfd": 438, "process_madvise": 440,
    "mount": 165, "umount2": 166, "pivot_root": 155, "chroot": 161, "unshare": 272, "setns": 308, "move_mount": 429,
    "open_tree": 428, "fsopen": 430, "fsconfig": 431, "fsmount": 432, "fspick": 433, "mount_setattr": 442, "bpf": 321,
    "perf_event_open": 298, "userfaultfd": 323, "keyctl": 250, "add_key": 248, "request_key": 249, "io_uring_setup": 425,
    "io_uring_enter": 426, "io_uring_register": 427, "kexec_load": 246, "kexec_file_load": 320, "init_module": 175,
    "finit_module": 313, "delete_module": 176, "reboot": 169, "swapon": 167, "swapoff": 168, "acct": 163, "quotactl": 179,
    "settimeofday": 164, "clock_settime": 227, "clock_adjtime": 305, "adjtimex": 159, "sethostname": 170, "setdomainname": 171,
    "syslog": 103, "iopl": 172, "ioperm": 173, "open_by_handle_at": 304, "name_to_handle_at": 303, "fanotify_init": 300,
    "lookup_dcookie": 212, "vhangup": 153, "nfsservctl": 180, "uselib": 134, "_sysctl": 156, "modify_ldt": 154,
    "personality": 135, "mknod": 133, "mknodat": 259, "move_pages": 279, "mbind": 237, "migrate_pages": 256, "msgget": 68,
    "shmget": 29, "semget": 64, "mq_open": 240,
}  # fmt: skip
_ARM64 = {
    "execve": 221, "execveat": 281, "clone": 220, "clone3": 435, "socket": 198, "ioctl": 29, "ptrace": 117,
    "socketpair": 199, "inotify_add_watch": 27, "open_tree_attr": 467, "file_setattr": 469,
    "process_vm_readv": 270, "process_vm_writev": 271, "kcmp": 272, "pidfd_getfd": 438, "process_madvise": 440, "mount": 40,
    "umount2": 39, "pivot_root": 41, "chroot": 51, "unshare": 97, "setns": 268, "move_mount": 429, "open_tree": 428,
    "fsopen": 430, "fsconfig": 431, "fsmount": 432, "fspick": 433, "mount_setattr": 442, "bpf": 280, "perf_event_open": 241,
    "userfaultfd": 282, "keyctl": 219, "add_key": 217, "request_key": 218, "io_uring_setup": 425, "io_uring_enter": 426,
    "io_uring_register": 427, "kexec_load": 104, "kexec_file_load": 294, "init_module": 105, "finit_module": 273,
    "delete_module": 106, "reboot": 142, "swapon": 224, "swapoff": 225, "acct": 89, "quotactl": 60, "settimeofday": 170,
    "clock_settime": 112, "clock_adjtime": 266, "adjtimex": 171, "sethostname": 161, "setdomainname": 162, "syslog": 116,
    "open_by_handle_at": 265, "name_to_handle_at": 264, "fanotify_init": 262, "lookup_dcookie": 18, "vhangup": 58,
    "nfsservctl": 42, "personality": 92, "mknodat": 33, "move_pages": 239, "mbind": 235, "migrate_pages": 238, "msgget": 186,
    "shmget": 194, "semget": 190, "mq_open": 180,
}  # fmt: skip
_X86_64_METADATA = {
    "chmod": 90, "fchmod": 91, "fchmodat": 268, "fchmodat2": 452, "chown": 92, "fchown": 93, "lchown": 94, "fchownat": 260,
    "utime": 132, "utimes": 235, "futimesat": 261, "utimensat": 280, "setxattr": 188, "lsetxattr": 189, "fsetxattr": 190,
    "removexattr": 197, "lremovexattr": 198, "fremovexattr": 199, "setxattrat": 463, "removexattrat": 466,
}  # fmt: skip
_ARM64_METADATA = {
    "fchmod": 52, "fchmodat": 53, "fchmodat2": 452, "fchown": 55, "fchownat": 54, "utimensat": 88, "setxattr": 5,
    "lsetxattr": 6, "fsetxattr": 7, "removexattr": 14, "lremovexattr": 15, "fremovexattr": 16, "setxattrat": 463,
    "removexattrat": 466,
}  # fmt: skip
"""Modes, owners, times and attributes: file rules do not cover them, read-only mounts do."""

_MACHINES = {"x86_64": (0xC000003E, _X86_64, _X86_64_METADATA), "aarch64": (0xC00000B7, _ARM64, _ARM64_METADATA)}

_ABOUT_OTHERS = {
    "x86_64": {"prlimit64": 302, "setpriority": 141, "sched_setaffinity": 203, "sched_setscheduler": 144, "sched_setparam": 142,
               "sched_setattr": 314, "ioprio_set": 251},
    "aarch64": {"prlimit64": 261, "setpriority": 140, "sched_setaffinity": 122, "sched_setscheduler": 119, "sched_setparam": 118,
                "sched_setattr": 274, "ioprio_set": 30},
}  # fmt: skip
"""Calls that change another process's limits and priority, and this one's where they name none."""

PROGRAM_CALLS = frozenset({"execve", "execveat"})
PROCESS_CALLS = frozenset({"fork", "vfork", "clone"})
SOCKET, CLONE = "socket", "clone"
_WATCHED = PROGRAM_CALLS | PROCESS_CALLS | {SOCKET, "socketpair", "clone3", "ioctl", "mknod", "mknodat", "personality"}
_UNKNOWN = frozenset({"clone3", "io_uring_setup", "io_uring_enter", "io_uring_register"})
"""Answered with "no such call", upon which libraries take the older one."""

_LOAD, _JUMP_EQUAL, _JUMP_SET, _JUMP_ABOVE, _RETURN = 0x20, 0x15, 0x45, 0x35, 0x06
_ALLOW, _KILL, _NOTIFY = 0x7FFF0000, 0x80000000, 0x7FC00000
_EPERM, _ENOSYS = 0x00050001, 0x00050026
_NUMBER, _ARCH = 0, 4
_CLONE_THREAD, _CLONE_NEW = 0x00010000, 0x7E020080
_X32_BIT = 0x40000000
_TIOCSTI, _TIOCLINUX, _TIOCSETD = 0x5412, 0x541C, 0x5423
_S_IFIFO, _S_IFREG, _S_IFMT = 0o010000, 0o100000, 0o170000


def _argument(index: int) -> int:
    """Where the lower half of an argument stands (little-endian machines)."""
    return 16 + 8 * index


def names_by_number() -> dict[int, str]:
    """The calls of this machine that the supervisor may hear of."""
    _, numbers, _ = _MACHINES[platform.machine()]
    return {numbers[name]: name for name in (*PROGRAM_CALLS, *PROCESS_CALLS, SOCKET) if name in numbers}


def program(*, programs: bool, metadata: bool = True) -> bytes | None:
    """The filter. Sockets are always put before the supervisor, since a local one may lead to a service that does anything.

    Args:
        programs: Whether programs and processes start freely; else each is put before the supervisor.
        metadata: Whether modes, owners and times of files may be changed, because all that is not to be changed is mounted so.

    Returns:
        The instructions (8 bytes each); None for a machine whose numbers are not known here.
    """
    if platform.machine() not in _MACHINES:
        return None
    arch, numbers, about_files = _MACHINES[platform.machine()]
    code = [_load(_ARCH), *_unless(arch, _KILL), _load(_NUMBER)]
    if platform.machine() == "x86_64":
        code += [_op(_JUMP_ABOVE, _X32_BIT, 0, 1), _op(_RETURN, _KILL)]
    for name, number in numbers.items():
        if name not in _WATCHED:
            code += _if_equal(number, [_op(_RETURN, _ENOSYS if name in _UNKNOWN else _EPERM)])
    code += [] if metadata else _without_namespaces(about_files)
    code += _if_equal(numbers["clone3"], [_op(_RETURN, _ENOSYS)])
    code += _if_equal(numbers["ioctl"], _refuse_arguments(1, (_TIOCSTI, _TIOCLINUX, _TIOCSETD)))
    code += _if_equal(numbers["socketpair"], _only_connected_pairs())
    code += _if_equal(numbers["personality"], _refuse_personality())
    for name, index in (("mknod", 1), ("mknodat", 2)):
        if name in numbers:
            code += _if_equal(numbers[name], _only_plain_nodes(index))
    code += _if_equal(numbers[CLONE], _clone(programs))
    if not programs:
        for name in (*sorted(PROGRAM_CALLS), "fork", "vfork"):
            if name in numbers:
                code += _if_equal(numbers[name], [_op(_RETURN, _NOTIFY)])
    code += _if_equal(numbers[SOCKET], [_op(_RETURN, _NOTIFY)])
    code.append(_op(_RETURN, _ALLOW))
    return b"".join(code)


def _op(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)


def _load(offset: int) -> bytes:
    return _op(_LOAD, offset)


def _unless(value: int, answer: int) -> list[bytes]:
    return [_op(_JUMP_EQUAL, value, 1, 0), _op(_RETURN, answer)]


def _if_equal(number: int, then: list[bytes]) -> list[bytes]:
    """Instructions for one call. They end in a return, or have loaded the number again."""
    return [_op(_JUMP_EQUAL, number, 0, len(then)), *then]


def _refuse_arguments(index: int, values: tuple[int, ...]) -> list[bytes]:
    code = [_load(_argument(index))]
    for value in values:
        code += [_op(_JUMP_EQUAL, value, 0, 1), _op(_RETURN, _EPERM)]
    return [*code, _op(_RETURN, _ALLOW)]


def _without_namespaces(about_files: dict[str, int]) -> list[bytes]:
    """What mounts and a view of its own processes would hold otherwise: what files are like, and what others may use."""
    code: list[bytes] = []
    for number in about_files.values():
        code += _if_equal(number, [_op(_RETURN, _EPERM)])
    for name, number in _ABOUT_OTHERS[platform.machine()].items():
        code += _if_equal(number, _only_zero(*((0, 1) if name in ("setpriority", "ioprio_set") else (0,))))
    return code


def _only_zero(*indices: int) -> list[bytes]:
    code: list[bytes] = []
    for index in indices:
        code += [_load(_argument(index)), _op(_JUMP_EQUAL, 0, 1, 0), _op(_RETURN, _EPERM)]
    return [*code, _op(_RETURN, _ALLOW)]


def _refuse_personality() -> list[bytes]:
    """Asking for the personality, and the usual one, are harmless."""
    return [
        _load(_argument(0)),
        _op(_JUMP_EQUAL, 0xFFFFFFFF, 1, 0),
        _op(_JUMP_EQUAL, 0, 0, 1),
        _op(_RETURN, _ALLOW),
        _op(_RETURN, _EPERM),
    ]


def _only_connected_pairs() -> list[bytes]:
    """A datagram socket of a pair could send to any socket that lies in a folder; streams stay with each other."""
    masked = struct.pack("=HBBI", 0x54, 0, 0, 0xF)  # and
    allow = [_op(_JUMP_EQUAL, kind, 0, 1) + _op(_RETURN, _ALLOW) for kind in (1, 5)]
    return _flat([_load(_argument(1)), masked, *allow, _op(_RETURN, _EPERM)])


def _only_plain_nodes(index: int) -> list[bytes]:
    """Plain files and named pipes; no devices, no sockets."""
    masked = struct.pack("=HBBI", 0x54, 0, 0, _S_IFMT)  # and
    allow = [_op(_JUMP_EQUAL, kind, 0, 1) + _op(_RETURN, _ALLOW) for kind in (0, _S_IFREG, _S_IFIFO)]
    return _flat([_load(_argument(index)), masked, *allow, _op(_RETURN, _EPERM)])


def _clone(programs: bool) -> list[bytes]:
    """No new namespaces; threads always; processes freely or past the supervisor."""
    code = [_load(_argument(0)), _op(_JUMP_SET, _CLONE_NEW, 0, 1), _op(_RETURN, _EPERM)]
    if not programs:
        code += [_op(_JUMP_SET, _CLONE_THREAD, 1, 0), _op(_RETURN, _NOTIFY)]
    return [*code, _op(_RETURN, _ALLOW)]


def _flat(parts: list[bytes]) -> list[bytes]:
    whole = b"".join(parts)
    return [whole[at : at + 8] for at in range(0, len(whole), 8)]
