"""The rules of macOS's Seatbelt for a policy, and the command line that sets them.

NOT TESTED ON A MAC. The rules are written from what is known of the language, and nothing has run under them. So
`mechanisms.py` counts Seatbelt as there only where attempts to break it have just failed, on that very machine.

What it cannot do: hold a program at an attempt. "ask" is "refuse" here. Nor has it namespaces: what leaves the
program's process group is not found.

Source: sandbox-exec(1), sandbox(7); the rules' language is not documented by its maker, its forms are those of the profiles in
/System/Library/Sandbox/Profiles.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from ..errors import SandboxError
from .mechanisms import frozen, hidden
from .policy import Policy, python_folders

__all__ = ["command", "profile"]

_PROGRAM = "/usr/bin/sandbox-exec"
_SYSTEM = (
    "/usr", "/bin", "/sbin", "/System", "/Library/Apple", "/Library/Frameworks", "/Library/Developer/CommandLineTools",
    "/opt/homebrew", "/nix/store", "/private/var/db/dyld", "/private/var/db/timezone", "/private/etc/localtime",
    "/private/etc/ssl", "/private/etc/hosts", "/private/etc/resolv.conf", "/private/etc/protocols", "/private/etc/services",
)  # fmt: skip
_DEVICES = ("/dev/null", "/dev/zero", "/dev/random", "/dev/urandom")
# By name: others hand out the arguments and environments of a person's other processes.
_SETTINGS = (
    "hw.", "machdep.cpu.", "kern.os", "kern.version", "kern.argmax", "kern.maxfilesperproc", "kern.hostname", "kern.ngroups",
    "kern.secure_kernel", "vm.loadavg", "security.mac.lockdown_mode_state",
)  # fmt: skip
_SERVICES = ("com.apple.system.logger", "com.apple.system.opendirectoryd.libinfo", "com.apple.system.opendirectoryd.membership")
_NETWORK_SERVICES = ("com.apple.SystemConfiguration.configd", "com.apple.dnssd.service", "com.apple.trustd.agent")
_APP = tuple(str(Path(folder, "Resources/Python.app/Contents/MacOS/Python")) for folder in (sys.base_prefix,))
_NAMES_SOCKET = "/private/var/run/mDNSResponder"


def command(policy: Policy, private: str, programs: Sequence[str]) -> list[str]:
    """What stands before the program's own command line. Not tested on a Mac.

    Args:
        policy: What the program may do; "ask" is "refuse".
        private: Its private temporary folder.
        programs: Which programs it may become: itself.

    Raises:
        SandboxError: A path holds a zero byte.
    """
    return [_PROGRAM, "-p", profile(policy, private, programs)]


def profile(policy: Policy, private: str, programs: Sequence[str]) -> str:
    """The rules as text, for `sandbox-exec -p`; of the rules that fit, the last one decides.

    Args:
        policy: What the program may do; "ask" is "refuse".
        private: Its private temporary folder.
        programs: Which programs it may become. A Python of a framework becomes the one in its app, which is allowed with it.

    Raises:
        SandboxError: A path holds a zero byte.
    """
    programs = [*programs, *_APP]
    writable = [*policy.writable, private]
    seen = [*_SYSTEM, *python_folders(), *policy.readable, *programs]
    rules = [
        "(version 1)",
        "(deny default)",
        _rule("allow file-read*", [*_within([*seen, *writable]), *_exactly(("/", *_DEVICES))]),
        _rule("allow file-read-metadata", _exactly(_above([*seen, *writable]))),  # without which no path is found
        _rule("allow file-write*", _within(writable)),
        _rule("allow file-write-data", _exactly(_DEVICES)),
        _rule("deny file-write*", _within(_kept(policy))),
        _rule("deny file-read* file-write*", _within(hidden(policy))),
        _rule("allow sysctl-read", [f"(sysctl-name-prefix {_quoted(name)})" for name in _SETTINGS]),
        _rule("allow mach-lookup", _services(_SERVICES)),
        *_program_rules(policy, programs),
        *(_network_rules() if policy.network == "allow" else ()),
    ]
    return "\n".join(rule for rule in rules if rule) + "\n"


def _kept(policy: Policy) -> list[str]:
    """What lies in writable folders and stays as it is, also where it is not there yet."""
    return [*frozen(policy), *(str(Path(folder, name)) for folder in policy.writable for name in policy.protected)]


def _program_rules(policy: Policy, programs: Sequence[str]) -> list[str]:
    if policy.programs == "allow":
        return ["(allow process-exec)", "(allow process-fork)", "(allow signal process-info* (target same-sandbox))"]
    return [_rule("allow process-exec", _exactly(programs)), "(allow signal process-info* (target self))"]


def _network_rules() -> list[str]:
    """The internet's families alone: a local socket is a way to programs that nothing confines."""
    return [
        "(allow system-socket)",
        "(allow network-outbound (remote ip))",
        "(allow network-bind network-inbound (local ip))",
        f"(allow network-outbound (literal {_quoted(_NAMES_SOCKET)}))",
        _rule("allow mach-lookup", _services(_NETWORK_SERVICES)),
    ]


def _rule(head: str, filters: Sequence[str]) -> str:
    """A rule with filters, "" without any: a rule that names nothing would hold for everything."""
    return f"({head} {' '.join(filters)})" if filters else ""


def _within(paths: Iterable[str]) -> list[str]:
    return [f"(subpath {_quoted(path)})" for path in _both(paths)]


def _exactly(paths: Iterable[str]) -> list[str]:
    return [f"(literal {_quoted(path)})" for path in _both(paths)]


def _services(names: Iterable[str]) -> list[str]:
    return [f"(global-name {_quoted(name)})" for name in names]


def _both(paths: Iterable[str]) -> list[str]:
    """Paths as they are named and as the kernel knows them (`/tmp` is `/private/tmp` there), each once."""
    paths = list(paths)
    if wrong := [path for path in paths if "\0" in path]:
        raise SandboxError(f"There is no path {wrong[0]!r}: it holds a zero byte.")
    return list(dict.fromkeys(one for path in paths for one in (os.path.normpath(path), os.path.realpath(path))))


def _above(paths: Iterable[str]) -> list[str]:
    """The folders on the way to paths."""
    return list(dict.fromkeys(str(folder) for path in _both(paths) for folder in Path(path).parents))


def _quoted(text: str) -> str:
    """A string of the rules' language."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
