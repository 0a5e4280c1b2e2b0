"""Attempts to get out of confinement over other processes, sockets, the kernel and what a run leaves behind, as data."""

from __future__ import annotations

from attempts import _py, _sh

PROCESSES = (
    _py("read the environment of the process that runs it", """
import glob
for path in glob.glob('/proc/[0-9]*/environ') + [f"/proc/{W['parent']}/environ", f"/proc/{W['stranger']}/environ", f'/proc/{os.getppid()}/environ']:
    try:
        show(path)
    except OSError as error:
        print(error)
""", control=True),
    _py("read the arguments of other processes", """
import glob
for path in glob.glob('/proc/[0-9]*/cmdline') + [f"/proc/{W['stranger']}/cmdline", f"/proc/{W['stranger']}/task/{W['stranger']}/cmdline"]:
    try:
        show(path)
    except OSError as error:
        print(error)
""", control=True),
    _py("reach files over the root of another process", """
for pid in (1, 2, os.getppid(), W['parent'], W['stranger']):
    for way in ('root', 'cwd'):
        try:
            show(f"/proc/{pid}/{way}{W['key']}"); break
        except OSError as error:
            print(error)
""", control=True),
    _py("use the descriptors of another process", """
for pid in {1, 2, os.getppid(), W['parent']}:
    for fd in range(3, 60):
        try:
            show(f'/proc/{pid}/fd/{fd}')
        except OSError:
            pass
""", caps=(("wall_seconds", 5),)),
    _py("use inherited descriptors", """
for fd in range(3, 1024):
    try:
        data = os.pread(fd, 1000, 0)
    except OSError as error:
        if error.errno != errno.EBADF:
            won(f'{fd} is open: {error}')
        continue
    won(f'{fd} is open'); print(data)
"""),
    _py("write into the memory of the processes above it", """
for pid in {1, 2, os.getppid(), W['parent'], W['stranger']} - {os.getpid()}:
    try:
        with open(f'/proc/{pid}/mem', 'r+b', buffering=0) as memory:
            memory.seek(int(open(f'/proc/{pid}/maps').readline().split('-')[0], 16)); memory.read(16); won(pid)
    except OSError as error:
        print(error)
"""),
    _py("read the memory of the processes above it", """
for pid in {1, 2, os.getppid(), W['parent'], W['stranger']} - {os.getpid()}:
    try:
        start = int(open(f'/proc/{pid}/maps').readline().split('-')[0], 16)
        with open(f'/proc/{pid}/mem', 'rb', buffering=0) as memory:
            memory.seek(start); memory.read(16); won(pid)
    except OSError as error:
        print(error)
"""),
    _py("trace a process", """
for pid in {1, 2, os.getppid(), W['parent'], W['stranger']} - {os.getpid()}:
    if call(101, 0x4206, pid, 0, 0) == 0: won(pid)
"""),
    _py("ask to be traced, and trace a child", "if call(101, 0, 0, 0, 0) == 0: won()", control=True),
    _py("read another process with process_vm_readv", """
buffer = ctypes.create_string_buffer(64)
local = struct.pack('=QQ', ctypes.addressof(buffer), 64)
for pid in {1, 2, os.getppid(), W['parent'], W['stranger'], os.getpid()}:
    if call(310, pid, local, 1, struct.pack('=QQ', ctypes.addressof(buffer), 64), 1, 0) >= 0: won(pid)
""", control=True),
    _py("write another process with process_vm_writev", """
buffer = ctypes.create_string_buffer(64)
local = struct.pack('=QQ', ctypes.addressof(buffer), 64)
if call(311, os.getpid(), local, 1, local, 1, 0) >= 0: won()
""", control=True),
    _py("take a descriptor of another process", """
for pid in {1, 2, os.getppid(), W['parent'], W['stranger'], os.getpid()}:
    handle = call(434, pid, 0)
    for fd in range(12):
        if handle >= 0 and call(438, handle, fd, 0) >= 0: won((pid, fd))
""", control=True),
    _py("signal the process that runs it", """
import signal
for pid in (W['parent'], W['stranger']):
    tries(lambda: (os.kill(pid, 0), won(pid)), lambda: os.kill(pid, signal.SIGKILL), lambda: os.killpg(pid, signal.SIGKILL))
"""),
    _py("signal with pidfd, tgkill and queued signals", """
for pid in (W['parent'], W['stranger']):
    handle = call(434, pid, 0)
    if handle >= 0 and call(424, handle, 0, 0, 0) == 0: won('pidfd')
    if call(234, pid, pid, 0) == 0: won('tgkill')
    if call(129, pid, 0, ctypes.create_string_buffer(128)) == 0: won('queued')
"""),
    _py("signal everyone", """
import signal
tries(lambda: os.kill(-1, signal.SIGKILL))
"""),
    _py("signal over the owner of a descriptor", """
import fcntl, signal
read, write_end = os.pipe()
tries(lambda: fcntl.fcntl(read, fcntl.F_SETOWN, W['stranger']), lambda: fcntl.fcntl(read, 10, signal.SIGKILL),
      lambda: fcntl.fcntl(read, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK), lambda: os.write(write_end, b'x'))
"""),
    _py("change the priority and limits of others", """
import resource
tries(lambda: (os.setpriority(os.PRIO_PROCESS, W['stranger'], 19), won()),
      lambda: (resource.prlimit(W['stranger'], resource.RLIMIT_NOFILE, (1, 1)), won()),
      lambda: (os.sched_setaffinity(W['stranger'], {0}), won()))
"""),
    _py("raise its own limits", """
import resource
for name in ('RLIMIT_NOFILE', 'RLIMIT_FSIZE', 'RLIMIT_CPU', 'RLIMIT_AS', 'RLIMIT_CORE'):
    soft, hard = resource.getrlimit(getattr(resource, name))
    tries(lambda: (resource.setrlimit(getattr(resource, name), (hard + 10, hard + 10)), won(name)))
    if hard == resource.RLIM_INFINITY: won(name + ' has no bound')
tries(lambda: (os.nice(-5), won('nice')))
"""),
    _py("write a core dump", "import signal; os.kill(os.getpid(), signal.SIGQUIT)", check="no_core"),
    _py("win privileges back", """
tries(lambda: (os.setgroups([0]), won('groups')), lambda: (os.setresuid(4, 4, 4), won('uids')), lambda: (os.chroot('.'), won('root')))
if os.getuid(): tries(lambda: (os.setuid(0), won('uid 0')), lambda: (os.setresuid(0, 0, 0), won('uids')))
if libc.prctl(39, 0, 0, 0, 0) != 1: won('new privileges')
if libc.prctl(38, 0, 0, 0, 0) == 0: won('switched it off')
sets = ctypes.create_string_buffer(24)
libc.capget(struct.pack('=Ii', 0x20080522, 0), sets)
if any(sets.raw): won(sets.raw)
"""),
    _sh("run setuid programs", """
for one in su sudo mount umount passwd newgrp chsh pkexec; do
  p=$(command -v $one) && timeout 0.2 "$p" --version </dev/null >/dev/null 2>&1
done
su -c 'echo GOT-"OUT"' </dev/null; mount -t tmpfs none "$PWD" && echo GOT-"OUT"; cat /etc/shadow && echo GOT-"OUT"
"""),
    _py("outlive the run in a session of its own", """
for _ in range(3):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            time.sleep(30)
        os._exit(0)
""", check="nothing_outlives", control=False),
    _sh("outlive the run in the background", "sleep 31 & (setsid sleep 31 &) ; nohup sleep 31 >/dev/null 2>&1 & echo done", check="nothing_outlives"),
    _py("outlive the run with signals off and its output closed", """
import signal
if os.fork() == 0:
    for number in range(1, 65):
        try: signal.signal(number, signal.SIG_IGN)
        except (OSError, ValueError): pass
    os.setsid(); os.closerange(0, 100); time.sleep(30)
""", check="nothing_outlives"),
    _py("sleep for ever", "time.sleep(1000)", caps=(("wall_seconds", 0.4),), check="ended_late"),
    _py("sleep for ever with a child that holds the output", """
if os.fork() == 0:
    os.setsid()
time.sleep(1000)
""", caps=(("wall_seconds", 0.4),), check="ended_late"),
    _py("end the process that watches it", """
import signal
for pid in {os.getppid(), 1, 2} - {os.getpid()}:
    tries(lambda: os.kill(pid, signal.SIGSTOP), lambda: os.kill(pid, signal.SIGKILL))
if os.fork() == 0:
    time.sleep(30)
""", check="nothing_outlives"),
    _py("tell that the confinement could not be set up", "print('lollms-confinement: no namespaces here'); sys.stdout.flush(); os._exit(125)", check="ran"),
    _py("use all of the processor", "\nwhile True: pass", caps=(("cpu_seconds", 1), ("wall_seconds", 5)), check="ended_before"),
)  # fmt: skip

STARTS = (
    _py("start a program", "import subprocess; print(subprocess.run(['/bin/echo', 'GOT-' + 'OUT'], capture_output=True).stdout)",
        programs="refuse", control=True),
    _py("become a program", "os.execv('/bin/echo', ['echo', 'GOT-' + 'OUT'])", programs="refuse", control=True),
    _py("start a program through the shell", "os.system('echo GOT-\"OUT\"')", programs="refuse", control=True),
    _py("start a program with posix_spawn", "os.waitpid(os.posix_spawn('/bin/echo', ['echo', 'GOT-' + 'OUT'], {}), 0)", programs="refuse", control=True),
    _py("start a program over the C library", """
argv = (ctypes.c_char_p * 3)(b'echo', b'GOT-' + b'OUT', None)
libc.execve(b'/bin/echo', argv, None)
""", programs="refuse", control=True),
    _py("become a program that lies in memory", """
fd = os.memfd_create('x')
os.write(fd, open('/bin/echo', 'rb').read())
argv = (ctypes.c_char_p * 3)(b'echo', b'GOT-' + b'OUT', None)
call(322, fd, b'', argv, None, 0x1000)
""", programs="refuse", control=True),
    _py("make a process with fork", "\nif os.fork() == 0: won()", programs="refuse", control=True),
    _py("make a process with vfork and clone", """
for pid in (call(58), call(56, 17, 0, 0, 0, 0)):
    if pid == 0:
        os.write(1, b'GOT-' + b'OUT'); os._exit(0)
""", programs="refuse"),
    _py("make a process with clone3", """
pid = call(435, struct.pack('=8Q', 0, 0, 0, 0, 17, 0, 0, 0), 64)
if pid == 0:
    os.write(1, b'GOT-' + b'OUT'); os._exit(0)
""", programs="refuse", control=True),
    _py("start a program from a thread", "import threading; t = threading.Thread(target=os.system, args=('echo GOT-\"OUT\"',)); t.start(); t.join()",
        programs="refuse", control=True),
    _py("start a program by a name that changes while it is looked at", """
import threading
name = ctypes.create_string_buffer(b'/nothing/there', 64)
def swap():
    for _ in range(2000):
        name.value = b'/bin/echo'; name.value = b'/nothing/there'
threading.Thread(target=swap).start()
argv = (ctypes.c_char_p * 3)(b'echo', b'GOT-' + b'OUT', None)
for _ in range(200): libc.execve(name, argv, None)
""", programs="refuse"),
    _py("take calls of another architecture", """
import mmap
code = mmap.mmap(-1, 4096, prot=7)
code.write(bytes.fromhex('b814000000cd80c3'))  # getpid of i386
address = ctypes.addressof(ctypes.c_char.from_buffer(code))
if ctypes.CFUNCTYPE(ctypes.c_int)(address)() > 0: won('i386')
"""),
    _py("take calls of the x32 kind", "if call(0x40000000 + 39) > 0: won()\nif call(0x40000000 + 41, 2, 1, 0) >= 0: won()"),
    _py("load a library into programs that others start", """
os.environ['LD_PRELOAD'] = W['workspace'] + '/evil.so'
tries(lambda: write('/etc/ld.so.preload'), lambda: write(W['home'] + '/.pam_environment', 'LD_PRELOAD=x'))
"""),
)  # fmt: skip

SOCKETS = (
    _py("talk to a server on a local socket", """
s = socket.socket(socket.AF_UNIX); s.connect(W['service']); print(s.recv(200))
""", network="allow", control=True),
    _py("talk to a server on an abstract socket", """
s = socket.socket(socket.AF_UNIX); s.connect(W['abstract'].replace('@', chr(0))); print(s.recv(200))
""", network="allow", control=True),
    _py("send a datagram to a local socket from one of a pair", """
a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
a.sendto(b'hello', W['datagrams'])
""", control=True),
    _py("connect one of a pair to a local socket", """
a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
a.connect(W['datagrams']); a.send(b'hello')
""", control=True),
    _py("reconnect a stream of a pair", """
for kind in (socket.SOCK_STREAM, socket.SOCK_SEQPACKET):
    a, b = socket.socketpair(socket.AF_UNIX, kind)
    tries(lambda: (a.connect(W['service']), won()), lambda: (a.connect_ex((W['service'])) == 0 and won()))
    print(a.sendmsg([b'x'], [], 0))
"""),
    _py("talk to a server of this machine", """
s = socket.create_connection(('127.0.0.1', W['port']), 2); print(s.recv(200))
""", control=True),
    _py("talk to a server of this machine over IPv6", """
s = socket.socket(socket.AF_INET6); s.connect(('::ffff:127.0.0.1', W['port'])); print(s.recv(200))
"""),
    _py("send a datagram into the network", "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.sendto(b'x', ('127.0.0.1', W['port'])); won()", control=True),
    _py("send with a fast open", "s = socket.socket(); s.sendto(b'x', 0x20000000, ('127.0.0.1', W['port'])); print(s.recv(200))"),
    _py("open a socket of any family", """
for family in range(1, 50):
    for kind in (1, 2, 3, 4, 5, 10):
        for protocol in (0, 1, 6, 17, 132, 255, 262):
            fd = call(41, family, kind, protocol)
            if fd >= 0:
                won((family, kind, protocol)); os.close(fd)
""", caps=(("wall_seconds", 8),)),
    _py("open a socket of any family where the internet is allowed", """
for family in range(1, 50):
    for kind in (1, 2, 3, 4, 5, 10):
        for protocol in (0, 3, 255, 768):
            fd = call(41, family, kind, protocol)
            if fd >= 0:
                if not (family in (2, 10) and kind in (1, 2)) and not (family == 16 and protocol == 0): won((family, kind, protocol))
                os.close(fd)
""", network="allow", caps=(("wall_seconds", 8),)),
    _py("hide the family in the upper half of the argument", "fd = call(41, (1 << 32) | 1, 1, 0)\nif fd >= 0: won()"),
    _py("open raw sockets where the internet is allowed", """
for family in (2, 10):
    for kind in (3, 3 | 0o4000, 3 | 0o2000000, 10):
        fd = call(41, family, kind, 1)
        if fd >= 0: won()
fd = call(41, 17, 3, 0x0300)
if fd >= 0: won()
""", network="allow"),
    _py("change the network of the machine where the internet is allowed", """
import fcntl
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
tries(lambda: (fcntl.ioctl(s, 0x8914, struct.pack('16sH14s', b'lo', 0x49, b'')), won()),
      lambda: (s.setsockopt(1, 25, b'lo' + bytes(14)), None), lambda: (s.setsockopt(1, 33, 1), won('debug')),
      lambda: (s.setsockopt(1, 36, 1), won('marks')))
""", network="allow"),
)  # fmt: skip

KERNEL = (
    _py("enter a user namespace of its own", """
for flag in (0x10000000, 0x10020000, 0x20000, 0x40000000, 0x20000000, 0x8000000, 0x4000000, 0x2000000, 0x80):
    if call(272, flag) == 0: won(hex(flag))
"""),
    _py("make a process in namespaces of its own", """
for flag in (0x10000000, 0x10020000, 0x40000000, 0x20000000):
    pid = call(56, flag | 17, 0, 0, 0, 0)
    if pid == 0:
        os.write(1, b'GOT-' + b'OUT'); os._exit(0)
    pid = call(435, struct.pack('=8Q', flag, 0, 0, 0, 17, 0, 0, 0), 64)
    if pid == 0:
        os.write(1, b'GOT-' + b'OUT'); os._exit(0)
"""),
    _sh("enter namespaces with the system's programs", 'unshare -Urm echo GOT-"OUT"; unshare -r echo GOT-"OUT"; nsenter -t 1 -m echo GOT-"OUT"; bwrap --ro-bind / / echo GOT-"OUT"; chroot / echo GOT-"OUT"'),
    _py("enter the namespaces of others", """
for pid in (1, W['parent'], W['stranger'], 'self'):
    for name in ('mnt', 'user', 'net', 'pid'):
        try:
            fd = os.open(f'/proc/{pid}/ns/{name}', os.O_RDONLY)
        except OSError:
            continue
        if call(308, fd, 0) == 0: won((pid, name))
"""),
    _py("mount", """
for source, target, kind, flags in ((b'none', b'.', b'tmpfs', 0), (b'/', b'.', None, 4096), (b'none', b'/', None, 32 | 4096), (b'p', b'.', b'proc', 0)):
    if libc.mount(source, target, kind, flags, None) == 0: won(target)
for target in (b'/proc', b'/tmp', b'.git', b'/'):
    if libc.umount2(target, 2) == 0: won('umount')
"""),
    _py("mount with the newer calls", """
for number, values in ((430, (b'tmpfs', 0)), (428, (-100, b'/', 1)), (442, (-100, b'/', 0, struct.pack('=4Q', 0, 1, 0, 0), 32)), (433, (-100, b'/', 0)), (467, (-100, b'/', 1, 0, 0))):
    if call(number, *values) >= 0: won(number)
"""),
    _py("change the root", "if libc.chroot(b'.') == 0: won()\nif call(155, b'.', b'.') == 0: won()"),
    _py("make calls over a ring", """
if call(425, 4, ctypes.create_string_buffer(120)) >= 0: won()
"""),
    _py("load a program into the kernel", """
for command in (0, 5):
    if call(321, command, struct.pack('=IIIII', 2, 4, 4, 1, 0) + bytes(100), 72) >= 0: won(command)
"""),
    _py("measure the machine", "if call(298, struct.pack('=IIQ', 1, 112, 0) + bytes(96), 0, -1, -1, 0) >= 0: won()"),
    _py("handle page faults itself", "if call(323, 1) >= 0: won()"),
    _py("use the kernel's keys", """
if call(248, b'user', b'planted', b'x', 1, -3) >= 0: won('added')
if call(250, 0, -3, 1) >= 0: won('keyring')
if call(249, b'user', b'planted', 0, -3) >= 0: won('requested')
""", control=True),
    _py("load a module or another kernel", """
for number, values in ((175, (b'x', 1, b'')), (313, (0, b'', 0)), (176, (b'x', 0)), (246, (0, 0, 0, 0)), (169, (0xfee1dead, 672274793, 0, 0)), (167, (b'x', 0)), (163, (b'acct',))):
    if call(number, *values) >= 0: won(number)
"""),
    _py("set the clock or the name of the machine", """
now = struct.pack('=qq', 0, 0)
if call(227, 0, now) == 0 or call(164, now, None) == 0: won('clock')
if call(170, b'mine', 4) == 0 or call(171, b'mine', 4) == 0: won('name')
if call(103, 3, ctypes.create_string_buffer(4096), 4096) >= 0: won('log')
if call(172, 3) == 0 or call(173, 0, 1, 1) == 0: won('ports')
"""),
    _py("switch the randomness of addresses off", "if call(135, 0x0040000) >= 0: won()", control=True),
    _py("share memory with others", """
if call(29, 0x4c4f, 4096, 0o1666) >= 0: won('shm')
if call(68, 0x4c4f, 0o1666) >= 0: won('msg')
if call(64, 0x4c4f, 1, 0o1666) >= 0: won('sem')
if call(240, b'planted', 0o102, 0o666, None) >= 0: won('mq')
""", check="no_shared_memory"),
    _py("leave a file in shared memory", "write('/dev/shm/planted-by-run')", check="no_shared_memory"),
    _py("take the filter away", """
if libc.prctl(22, 0, 0, 0, 0) == 0 or call(317, 1, 0, struct.pack('=HxxxxxxQ', 0, 0)) == 0: won()
"""),
    _py("lay a filter of its own whose supervisor lets everything go on", """
code = struct.pack('=HBBI', 6, 0, 0, 0x7fc00000)
keep = ctypes.create_string_buffer(code, 8)
fd = call(317, 1, 8, struct.pack('=HxxxxxxQ', 1, ctypes.addressof(keep)))
if fd >= 0: won()
"""),
)  # fmt: skip

FLOODS = (
    _py("make processes without end", """
made = 0
for _ in range(500):
    try:
        pid = os.fork()
    except OSError:
        break
    if pid == 0:
        time.sleep(20); os._exit(0)
    made += 1
print('made', made)
if made > 400: won('made %d processes' % made)
""", caps=(("processes", 40),), check="nothing_outlives", needs="groups"),
    _py("take memory without end", """
kept = []
for _ in range(64):
    kept.append(bytearray(os.urandom(1) * (16 << 20)))
won('took a gigabyte')
""", caps=(("memory_bytes", 256 << 20),)),
    _py("take memory without end in many processes", """
for _ in range(8):
    if os.fork() == 0:
        try:
            kept = bytearray(60 << 20)
            kept[::4096] = bytes(1) * len(kept[::4096]); os.write(1, b'took '); time.sleep(0.2)
        except MemoryError:
            pass
        os._exit(0)
done = []
for _ in range(8):
    try: done.append(os.wait()[1])
    except OSError: break
if done == [0] * 8: won('took 480 megabytes in all')
""", caps=(("memory_bytes", 200 << 20),), needs="groups"),
    _py("take memory without end in files of memory", """
fd = os.memfd_create('x')
block = b'x' * (1 << 20)
size = 0
try:
    for _ in range(600): size += os.write(fd, block)
except OSError as error: print(error)
if size > (512 << 20): won(size)
""", caps=(("memory_bytes", 256 << 20), ("file_bytes", 64 << 20))),
    _py("fill the disk with one file", """
try:
    with open('big', 'wb') as file:
        for _ in range(64): file.write(bytes(1 << 20))
except OSError as error:
    print(error)
if os.path.getsize('big') > (20 << 20): won()
""", caps=(("file_bytes", 16 << 20),)),
    _py("make a file large without writing it", """
try: os.truncate(os.open('big', os.O_CREAT | os.O_RDWR), 1 << 40); won()
except OSError as error: print(error)
try: os.posix_fallocate(os.open('big', os.O_CREAT | os.O_RDWR), 0, 32 << 20); won()
except OSError as error: print(error)
""", caps=(("file_bytes", 16 << 20),)),
    _py("open descriptors without end", """
kept = []
try:
    while len(kept) < 2000: kept.append(os.dup(0))
    won()
except OSError as error: print(error)
""", caps=(("open_files", 64),)),
    _py("flood the output", """
for _ in range(400): os.write(1, b'x' * 65536)
""", check="output_is_bounded"),
    _py("flood the output without end", """
while True: os.write(1, b'x' * 65536)
""", caps=(("wall_seconds", 0.4),), check="output_is_bounded"),
    _py("steer the terminal of who reads the output", r"""
sys.stdout.write('\x1b]0;title\x07\x1b[31mred\x1b[2J\x1b[6n\x1bP+q544e\x1b\\\x9b31m\x1b]52;c;ZWNobw==\x07\x08\x08\x07')
sys.stdout.write('\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\\x0e\x0f\x00 \x1b\x1b[[31m31m \x1b')
sys.stdout.flush(); os.write(1, b'[2J\xc2\x9b2J\x1b'); time.sleep(0.1); os.write(1, b']0;x'); os.write(1, b'\x07 \x1b(0 \x1b#8 \x1bc')
""", check="no_controls"),
    _py("write over a line to hide what stood there", r"sys.stdout.write('harmful\rharmless\nlast\r'); sys.stdout.flush()", check="no_controls"),
)  # fmt: skip

EVERY_KERNEL = (*PROCESSES, *STARTS, *SOCKETS, *KERNEL, *FLOODS)
