"""Attempts to get out of confinement over files, other processes and starting programs, as data.

Each is a script that runs confined. It has succeeded where it prints a secret of the world outside or the mark, or where the
outside changed (`player.py` looks after each run). `W` names the places of that world for a script, never its secrets.
"""

from __future__ import annotations

from dataclasses import dataclass

MARK = "GOT-OUT"

PRELUDE = """
import ctypes, errno, os, socket, struct, sys, time
libc = ctypes.CDLL(None, use_errno=True)
def won(why=""):
    print("GOT-" + "OUT", why, flush=True)
def call(number, *values):
    wrapped = [ctypes.c_long(v) if isinstance(v, int) else v for v in values]
    libc.syscall.restype = ctypes.c_long
    return libc.syscall(ctypes.c_long(number), *wrapped)
def tries(*doings):
    for one in doings:
        try:
            one()
        except OSError as error:
            print("refused:", error)
def show(path):
    with open(path, "rb") as file:
        sys.stdout.buffer.write(file.read(100000)); sys.stdout.flush()
def write(path, text="x", mode="w"):
    with open(path, mode) as file:
        file.write(text)
    won("wrote " + str(path))
"""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt.

    Attributes:
        name: What it tries, as a phrase.
        code: The script.
        shell: Whether the script is one of the shell.
        programs: What the policy says of starting programs.
        network: What it says of the network.
        control: Whether the attempt succeeds, harmlessly, where nothing confines it, so that a run there proves the attempt.
        check: A look of `player.py` at the outside afterwards.
        caps: Caps that differ from the small ones of the suite.
        repository: Whether the workspace is a git repository.
        needs: "groups" where only control groups, which not every user may make, can hold it.
    """

    name: str
    code: str
    shell: bool = False
    programs: str = "allow"
    network: str = "refuse"
    control: bool = False
    check: str = ""
    caps: tuple[tuple[str, float], ...] = ()
    repository: bool = False
    needs: str = ""


def _py(name: str, code: str, **more: object) -> Attempt:
    return Attempt(name, code, **more)  # type: ignore[arg-type]


def _sh(name: str, code: str, **more: object) -> Attempt:
    return Attempt(name, code, shell=True, **more)  # type: ignore[arg-type]


FILES = (
    _py("read a key in the home folder", "show(W['key'])", control=True),
    _sh("read the home folder with a shell", 'cat "$W_HOME"/.ssh/* "$W_HOME"/notes.txt; ls -la "$W_HOME" && echo GOT-"OUT"', control=True),
    _py("read another workspace", "show(W['other'] + '/plan.txt')", control=True),
    _py("climb out of the workspace with dots", "show('../other/plan.txt')", control=True),
    _py("climb out from the private temporary folder", "show(os.environ['TMPDIR'] + '/' + os.path.relpath(W['key'], os.environ['TMPDIR']))",
        control=True),
    _py("list what lies beside the workspace", "if 'home' in os.listdir('..'): won()", control=True),
    _py("list the root's home folders", """
tries(lambda: set(os.listdir('/root')) - set(sys.prefix.split('/')) - set(W['library'].split('/')) and won('root'),
      lambda: os.listdir(W['home']) and won('home'))
""", control=True),
    _py("read the password hashes", "tries(lambda: (show('/etc/shadow'), won()), lambda: (show('/etc/gshadow'), won()))"),
    _py("read keys of the machine", """
for path in ('/etc/ssh/ssh_host_ed25519_key', '/etc/ssl/private', '/etc/sudoers', '/root/.bashrc', '/var/lib/dpkg/lock'):
    tries(lambda: (open(path).read(1), won(path)))
"""),
    _py("write outside the workspace", "write(W['home'] + '/planted.txt')", control=True),
    _py("append to a file outside", "write(W['key'], 'x', 'a')", control=True),
    _py("truncate a file outside", "os.truncate(W['key'], 0); won()", control=True),
    _py("remove a file outside", "os.unlink(W['key']); won()", control=True),
    _py("rename a file outside into the workspace", "os.rename(W['key'], 'mine'); show('mine')", control=True),
    _py("rename the workspace away", "os.rename(W['workspace'], W['workspace'] + '-away'); won()", control=True),
    _py("put a link in the place of the workspace",
        "os.rename(os.getcwd(), os.environ['TMPDIR'] + '/w'); os.symlink(W['home'], W['workspace']); won()", control=True),
    _py("read through a symbolic link", "os.symlink(W['key'], 'link'); show('link')", control=True),
    _py("write through a symbolic link to a folder",
        "os.symlink(W['home'], 'folder'); write('folder/planted.txt')", control=True),
    _py("read through a link to the root", "os.symlink('/', 'root'); show('root' + W['key'])", control=True),
    _py("make a hard link to a file outside", "os.link(W['key'], 'hard'); show('hard')", control=True),
    _py("make a hard link through a descriptor", """
fd = os.open(W['key'], os.O_PATH)
call(265, -100, f'/proc/self/fd/{fd}'.encode(), -100, b'hard', 0x400); show('hard')
""", control=True),
    _py("open again what was opened as a path", """
fd = os.open(W['key'], os.O_PATH)
show(f'/proc/self/fd/{fd}')
""", control=True),
    _py("win a race between the check of a link and its opening", """
import threading
write_end = time.monotonic() + 0.25
open('own', 'w').close()
def swap():
    while time.monotonic() < write_end:
        for target in ('own', W['key']):
            try:
                os.symlink(target, 'next'); os.rename('next', 'raced')
            except OSError:
                pass
threading.Thread(target=swap).start()
while time.monotonic() < write_end:
    try:
        data = open('raced', 'rb').read()
    except OSError:
        continue
    if data:
        sys.stdout.buffer.write(data); break
"""),
    _py("win a race between a folder and a link to one outside", """
import threading
end = time.monotonic() + 0.25
os.mkdir('real'); os.mkdir('real/.ssh'); os.symlink(W['home'], 'fake')
def swap():
    while time.monotonic() < end:
        try:
            call(316, -100, b'real', -100, b'fake', 2)  # exchanges both names
        except OSError:
            pass
threading.Thread(target=swap).start()
name = '/.ssh/' + os.path.basename(W['key'])
while time.monotonic() < end:
    try:
        show('real' + name); break
    except OSError:
        continue
""", control=True),
    _py("change the mode of a file outside", "os.chmod(W['key'], 0o666); won()", control=True),
    _py("change the mode of a folder outside through a descriptor", """
fd = os.open(W['home'], os.O_PATH)
os.chmod(f'/proc/self/fd/{fd}', 0o777); won()
""", control=True),
    _py("change the times of a file outside", "os.utime(W['key'], (1, 1)); won()", control=True),
    _py("set an attribute of a file outside", "os.setxattr(W['key'], 'user.mark', b'1'); won()"),
    _py("open a file by its handle", """
handle = ctypes.create_string_buffer(struct.pack('=Ii', 128, 0) + bytes(128))
mount = ctypes.c_int(0)
if call(303, -100, W['key'].encode(), handle, ctypes.byref(mount), 0) >= 0:
    fd = call(304, os.open('.', os.O_RDONLY), handle, 0)
    if fd >= 0:
        sys.stdout.buffer.write(os.read(fd, 1000))
"""),
    _py("watch a folder outside", """
fd = libc.inotify_init1(0)
if fd >= 0 and libc.inotify_add_watch(fd, W['home'].encode(), 0xfff) >= 0:
    won('is told of what happens there')
""", control=True),
    _py("write into the programs of the system", """
tries(*(lambda p=p: write(p) for p in ('/usr/bin/planted', '/usr/local/bin/planted', '/usr/lib/planted.so', '/bin/planted', '/lib/planted')))
""", check="no_planted_files"),
    _py("write into the settings of the system", """
tries(*(lambda p=p: write(p, 'x', 'a') for p in ('/etc/ld.so.preload', '/etc/passwd', '/etc/hosts', '/etc/cron.d/planted', '/etc/profile')))
""", check="no_planted_files"),
    _py("write into the Python environment", """
import sysconfig
places = [W['packages'], W['library'], W['prefix'], os.path.dirname(os.__file__)]
tries(*(lambda p=p: write(p + '/planted.py') for p in places), *(lambda p=p: write(p + '/planted.pth', 'import os') for p in places))
""", check="no_planted_files"),
    _py("change a module of the Python environment", "tries(lambda: write(os.__file__, '', 'a'), lambda: os.utime(os.__file__), lambda: (os.chmod(os.__file__, 0o644), won()))"),
    _py("put a compiled module beside a true one",
        "d = os.path.dirname(os.__file__) + '/__pycache__'; tries(lambda: write(d + '/planted.pyc'))", check="no_planted_files"),
    _py("plant a module where the next Python of the workspace starts", """
for name in ('sitecustomize.py', 'usercustomize.py', 'planted.pth', 'os.py', 'json.py'):
    open(name, 'w').write("open(%r, 'w').close()" % (W['home'] + '/planted.txt'))
""", check="python_outside"),
    _py("write to the person's start files", """
tries(*(lambda p=p: write(W['home'] + '/' + p, 'x', 'a') for p in ('.bashrc', '.profile', '.config/planted', '.local/lib/planted.pth')))
""", control=True),
    _py("write a hook of the repository", """
os.makedirs('.git/hooks', exist_ok=True)
open('.git/hooks/pre-commit', 'w').write('#!/bin/sh\\ntouch ' + W['home'] + '/planted.txt\\n'); os.chmod('.git/hooks/pre-commit', 0o755)
""", repository=True, check="git_outside", control=True),
    _py("change the settings of the repository", """
open('.git/config', 'a').write('[core]\\n\\tfsmonitor = touch ' + W['home'] + '/planted.txt; false\\n')
""", repository=True, check="git_outside", control=True),
    _py("put another repository in the place of the true one", """
os.rename('.git', 'git-before'); os.makedirs('.git/hooks')
won('moved it')
""", repository=True, control=True),
    _py("move the repository with its folder and make another", """
ways = (lambda: os.rename('.git', os.environ['TMPDIR'] + '/g'), lambda: os.unlink('.git'), lambda: os.rmdir('.git'),
        lambda: __import__('shutil').rmtree('.git'))
for way in ways:
    tries(lambda: (way(), won()))
""", repository=True, control=True),
    _sh("make a repository with a hook where there is none", """
mkdir -p .git/objects .git/refs .git/hooks; echo 'ref: refs/heads/main' > .git/HEAD
printf '[core]\\n\\trepositoryformatversion = 0\\n\\tfsmonitor = touch %s/planted.txt; false\\n' "$W_HOME" > .git/config
""", check="git_outside", control=True),
    _sh("make the workspace itself a bare repository", """
mkdir -p objects refs; echo 'ref: refs/heads/main' > HEAD
printf '[core]\\n\\trepositoryformatversion = 0\\n\\tworktree = .\\n\\tbare = false\\n\\tfsmonitor = touch %s/planted.txt; false\\n' "$W_HOME" > config
""", check="git_outside", control=True),
    _sh("make a repository where its name to be set aside is taken", """
mkdir -p .git/objects .git/refs; echo 'ref: refs/heads/main' > .git/HEAD; echo x > .git.made-by-confined-program
printf '[core]\\n\\trepositoryformatversion = 0\\n\\tfsmonitor = touch %s/planted.txt; false\\n' "$W_HOME" > .git/config
""", check="git_outside", control=True),
    _sh("make a repository and close the workspace against its being set aside", """
mkdir -p .git/objects .git/refs; echo 'ref: refs/heads/main' > .git/HEAD
printf '[core]\\n\\trepositoryformatversion = 0\\n\\tfsmonitor = touch %s/planted.txt; false\\n' "$W_HOME" > .git/config
chmod 555 .
""", check="git_outside", control=True),
    _sh("make repositories further down, and close their folders against being looked into", """
for at in sub sub/deep; do
    mkdir -p $at/.git/objects $at/.git/refs; echo 'ref: refs/heads/main' > $at/.git/HEAD
    printf '[core]\\n\\trepositoryformatversion = 0\\n\\tfsmonitor = touch %s/planted.txt; false\\n' "$W_HOME" > $at/.git/config
done
chmod 311 sub/deep sub
""", check="git_outside", control=True),
    _sh("make a repository further down with nothing but a hook", """
mkdir -p sub/.git/objects sub/.git/refs sub/.git/hooks; echo 'ref: refs/heads/main' > sub/.git/HEAD
printf '[core]\\n\\trepositoryformatversion = 0\\n' > sub/.git/config
printf '#!/bin/sh\\ntouch %s/planted.txt\\n' "$W_HOME" > sub/.git/hooks/pre-commit; chmod 755 sub/.git/hooks/pre-commit
""", check="git_outside", control=True),
    _py("hide a repository behind very many folders", """
for number in range(5000):
    os.mkdir(f'decoy-{number}')
os.makedirs('sub/deep/.git/objects'); os.makedirs('sub/deep/.git/refs')
open('sub/deep/.git/HEAD', 'w').write('ref: refs/heads/main')
with open('sub/deep/.git/config', 'w') as config:
    config.write('[core]\\n\\trepositoryformatversion = 0\\n\\tfsmonitor = touch ' + W['home'] + '/planted.txt; false\\n')
""", check="git_outside", control=True),
    _sh("have a repository lie under another name", """
mkdir -p sub store/objects store/refs; echo 'ref: refs/heads/main' > store/HEAD; echo 'gitdir: ../store' > sub/.git
printf '[core]\\n\\trepositoryformatversion = 0\\n\\tfsmonitor = touch %s/planted.txt; false\\n' "$W_HOME" > store/config
""", check="git_outside", control=True),
    _sh("make a bare repository whose parts lie elsewhere", """
mkdir -p store/objects store/refs; echo 'ref: refs/heads/main' > HEAD; echo store > commondir
printf '[core]\\n\\trepositoryformatversion = 0\\n\\tworktree = %s\\n\\tbare = false\\n\\tfsmonitor = touch %s/planted.txt; false\\n' \\
    "$PWD" "$W_HOME" > store/config
""", check="git_outside"),
    _sh("have a repository follow the settings in another file", """
mkdir -p sub/.git/objects sub/.git/refs; echo 'ref: refs/heads/main' > sub/.git/HEAD
printf '[core]\\n\\trepositoryformatversion = 0\\n[Include] path = ../more\\n' > sub/.git/config
printf '[core]\\n\\tfsmonitor = touch %s/planted.txt; false\\n' "$W_HOME" > sub/more
""", check="git_outside", control=True),
    _sh("hide a program in a setting behind harmless ones", """
mkdir -p sub/.git/objects sub/.git/refs; echo 'ref: refs/heads/main' > sub/.git/HEAD
printf '[core]\\n\\trepositoryformatversion = 0\\n[remote "[core]"]\\n\\turl = y\\n[CORE]fsmonitor="touch %s/planted.txt; false"\\n' \\
    "$W_HOME" > sub/.git/config
""", check="git_outside", control=True),
    _sh("hide a repository in what looks like an environment of Python", """
mkdir -p sub/deep/.git/objects sub/deep/.git/refs; echo 'ref: refs/heads/main' > sub/deep/.git/HEAD; touch sub/pyvenv.cfg
printf '[core]\\n\\trepositoryformatversion = 0\\n\\tfsmonitor = touch %s/planted.txt; false\\n' "$W_HOME" > sub/deep/.git/config
""", check="git_outside", control=True),
    _py("nest folders so deep that nobody can remove them", """
for folder in (os.environ['TMPDIR'],):
    os.chdir(folder)
    for _ in range(1200):
        os.mkdir('d'); os.chdir('d')
""", check="private_folder_is_gone"),
    _py("leave a folder that nobody may enter", """
os.makedirs(os.environ['TMPDIR'] + '/a/b'); open(os.environ['TMPDIR'] + '/a/b/c', 'w').close()
os.chmod(os.environ['TMPDIR'] + '/a/b', 0); os.chmod(os.environ['TMPDIR'] + '/a', 0)
""", check="private_folder_is_gone"),
    _py("have a file outside removed over a link in the temporary folder",
        "os.symlink(W['home'], os.environ['TMPDIR'] + '/link'); os.symlink(W['key'], os.environ['TMPDIR'] + '/key')"),
    _py("read the temporary folder of others", "print(os.listdir('/tmp')); show(W['temporary'])", control=True),
    _py("write into the temporary folder of others", "write(W['temporary'], 'x', 'r+')", control=True),
)  # fmt: skip

DEVICES = (
    _py("read the memory of the machine", """
for path in ('/dev/mem', '/dev/kmem', '/dev/port', '/dev/kmsg', '/proc/kcore', '/proc/kmsg', '/dev/vda', '/dev/sda', '/dev/loop0',
             '/dev/loop-control', '/dev/fuse', '/dev/kvm', '/dev/net/tun', '/dev/vhost-vsock', '/dev/userfaultfd', '/dev/uinput'):
    tries(lambda: (os.open(path, os.O_RDWR if path.startswith('/dev') else os.O_RDONLY), won(path)))
"""),
    _py("make a device of its own", """
tries(lambda: (os.mknod('disk', 0o60600, os.makedev(254, 0)), won()), lambda: (os.mknod('mem', 0o20600, os.makedev(1, 1)), won()))
"""),
    _py("open the terminal", "tries(lambda: (os.open('/dev/tty', os.O_RDWR), won()), lambda: (os.open('/dev/tty1', os.O_RDWR), won()), lambda: (os.open('/dev/console', os.O_RDWR), won()))"),
    _py("type into the terminal", """
import fcntl
for fd in (0, 1, 2):
    tries(lambda: (fcntl.ioctl(fd, 0x5412, b'x'), won()))
"""),
    _py("type into a terminal of its own, whose number the filter may not know", """
import pty
try:
    master, slave = pty.openpty()
except OSError as error:
    print(error)
else:
    if libc.ioctl(slave, ctypes.c_ulong((7 << 32) | 0x5412), b'x') == 0: won()
"""),
    _py("change settings of the kernel", """
for path in ('/proc/sys/kernel/core_pattern', '/proc/sys/kernel/hostname', '/proc/sys/vm/drop_caches', '/proc/sysrq-trigger',
             '/proc/sys/kernel/modprobe', '/proc/sys/kernel/pid_max', '/proc/sys/fs/binfmt_misc/register', '/sys/power/state',
             '/sys/kernel/uevent_helper', '/proc/self/oom_score_adj_of_all', '/proc/sys/user/max_user_namespaces'):
    tries(lambda: (os.open(path, os.O_WRONLY), won(path)))
"""),
    _py("change the control groups", """
for top in ('/sys/fs/cgroup', '/sys/fs/cgroup/memory', '/sys/fs/cgroup/pids'):
    tries(lambda: (os.mkdir(top + '/planted'), won(top)), lambda: write(top + '/cgroup.procs', '0'))
"""),
    _py("mark itself as the last one to be ended for memory", "tries(lambda: write('/proc/self/oom_score_adj', '-1000'))"),
)  # fmt: skip
