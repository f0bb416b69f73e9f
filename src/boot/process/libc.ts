/** The C library's calls that Node lacks, through koffi. Loaded on first need, so that a start that needs none pays nothing. */
import koffi from 'koffi';

export const LOCK_EX = 2;
export const LOCK_NB = 4;
export const IN_OPEN = 0x20;
export const IN_DELETE_SELF = 0x400;
const IN_NONBLOCK = 0o4000;
const IN_CLOEXEC = 0o2000000;
const AF_UNIX = 1;
const SOCK_DGRAM = 2;
const SOCK_NONBLOCK = 0o4000;
const SOCK_CLOEXEC = 0o2000000;
const RLIMIT_NOFILE = 7;
const PROT_READ = 1;
const PROT_WRITE = 2;
const MAP_SHARED = 1;
const SIG_IGN = 1;
/** `(void *) -1` */
const SIG_ERR = 0xffff_ffff_ffff_ffffn;
/** `struct sigaction` has 152 bytes on x86-64, and fewer elsewhere. */
const SIGACTION_BYTES_MAX = 256;
/** `(void *) -1` */
const MAP_FAILED = 0xffff_ffff_ffff_ffffn;
/** `struct sockaddr_un`: two bytes of family, 108 of path. */
const SUN_PATH_BYTES = 108;

/** A failed system call; `code` is the symbolic name (`EAGAIN`). */
class SysError extends Error {
  readonly code: string;
  constructor(call: string, errno: number) {
    const code = Object.entries(koffi.os.errno).find(([, n]) => n === errno)?.[0] ?? `errno ${errno}`;
    super(`${call}: ${code}`);
    this.name = 'SysError';
    this.code = code;
  }
}

export interface Libc {
  /** Throws {@link SysError} (`EWOULDBLOCK` is reported as `EAGAIN`). */
  flock(fd: number, operation: number): void;
  /** A non-blocking inotify descriptor that watches one path. */
  inotify(path: string, mask: number): number;
  /** Bytes read, or 0 when nothing is there yet. */
  readNonblocking(fd: number, into: Uint8Array): number;
  setNoFileLimit(value: number): void;
  /** A non-blocking unix datagram socket. */
  datagramSocket(): number;
  /** `path` with a leading NUL is an abstract name. */
  bindUnix(fd: number, path: string): void;
  sendUnix(fd: number, path: string, data: Uint8Array): void;
  close(fd: number): void;
  /** The kernel drops that signal. Gives what puts back the handler that was there. Not for what V8 takes meanwhile (its profiler). */
  ignoreSignal(signal: number): () => void;
  /** A signal comes to nothing, and what this process starts does not inherit that. For those that Node has no name for. */
  outliveSignal(signal: number): void;
  /** A file's first bytes as memory, shared with the file for as long as this process lives: what is written stays, however it dies. */
  mapShared(fd: number, bytes: number): Uint8Array;
}

/** @throws when the library or koffi's binary for this platform is missing. */
export function loadLibc(): Libc {
  const lib = koffi.load(process.platform === 'linux' ? 'libc.so.6' : 'libc.dylib');
  const flock = lib.func('int flock(int fd, int operation)');
  const inotifyInit = lib.func('int inotify_init1(int flags)');
  const inotifyAdd = lib.func('int inotify_add_watch(int fd, const char *path, uint32_t mask)');
  const read = lib.func('long read(int fd, void *buf, size_t count)');
  const prlimit = lib.func('int prlimit(int pid, int resource, const void *next, void *old)');
  const socket = lib.func('int socket(int domain, int type, int protocol)');
  const bind = lib.func('int bind(int fd, const void *addr, uint32_t len)');
  const sendto = lib.func('long sendto(int fd, const void *buf, size_t len, int flags, const void *addr, uint32_t addrlen)');
  const close = lib.func('int close(int fd)');
  const sigaction = lib.func('int sigaction(int signal, const void *next, void *old)');
  const setHandler = lib.func('void *signal(int signal, intptr_t handler)');
  const mmap = lib.func('void *mmap(void *addr, size_t length, int prot, int flags, int fd, long offset)');
  const check = (call: string, result: unknown): number => {
    const value = Number(result);
    if (value < 0) throw new SysError(call, koffi.errno());
    return value;
  };
  return {
    flock: (fd, operation) => void check('flock', flock(fd, operation)),
    inotify(path, mask) {
      const fd = check('inotify_init1', inotifyInit(IN_NONBLOCK | IN_CLOEXEC));
      try {
        check(`inotify_add_watch ${path}`, inotifyAdd(fd, path, mask));
      } catch (error) {
        close(fd);
        throw error;
      }
      return fd;
    },
    readNonblocking(fd, into) {
      const n = Number(read(fd, into, into.length));
      if (n >= 0) return n;
      const errno = koffi.errno();
      if (errno === koffi.os.errno.EAGAIN || errno === koffi.os.errno.EINTR) return 0;
      throw new SysError('read', errno);
    },
    setNoFileLimit(value) {
      const limits = new BigUint64Array([BigInt(value), BigInt(value)]);
      check('prlimit', prlimit(0, RLIMIT_NOFILE, limits, null));
    },
    datagramSocket: () => check('socket', socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)),
    bindUnix(fd, path) {
      const addr = unixAddress(path);
      check(`bind ${path}`, bind(fd, addr, addr.length));
    },
    sendUnix(fd, path, data) {
      const addr = unixAddress(path);
      check(`sendto ${path}`, sendto(fd, data, data.length, 0, addr, addr.length));
    },
    close: (fd) => void check('close', close(fd)),
    ignoreSignal(signal) {
      const before = new Uint8Array(SIGACTION_BYTES_MAX);
      check('sigaction', sigaction(signal, null, before));
      if (koffi.address(setHandler(signal, SIG_IGN)) === SIG_ERR) throw new SysError('signal', koffi.errno());
      return () => void check('sigaction', sigaction(signal, before, null));
    },
    outliveSignal(signal) {
      // A function of an integer that changes nothing: as a handler it may run at any moment.
      const nothing = koffi.address(lib.symbol('abs', 'void *'));
      if (koffi.address(setHandler(signal, nothing)) === SIG_ERR) throw new SysError('signal', koffi.errno());
    },
    mapShared(fd, bytes) {
      const at: unknown = mmap(null, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
      if (koffi.address(at) === MAP_FAILED) throw new SysError('mmap', koffi.errno());
      return new Uint8Array(koffi.view(at, bytes));
    },
  };
}

function unixAddress(path: string): Uint8Array {
  const name = new TextEncoder().encode(path);
  if (name.length === 0 || name.length >= SUN_PATH_BYTES)
    throw new Error(`${JSON.stringify(path)} is not a unix socket address: at most ${SUN_PATH_BYTES - 1} bytes`);
  // An abstract name is counted exactly; a path carries its closing NUL.
  const out = new Uint8Array(2 + name.length + (name[0] === 0 ? 0 : 1));
  new DataView(out.buffer).setUint16(0, AF_UNIX, true);
  out.set(name, 2);
  return out;
}
