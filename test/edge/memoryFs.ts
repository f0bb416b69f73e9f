/** A file system in memory that can lose its power: what was not synced is then torn or gone. Only what checkpoints use. */
import type { HostFs } from '../../src/ports/ports.ts';

export interface MemoryFs extends HostFs {
  files: Map<string, string>;
  /** Every call so far, e.g. `write /a fsync`. */
  calls: string[];
  /** The next call that matches fails with this code. */
  failNext(call: RegExp, code: string, times?: number): void;
  /** Runs before each call; a promise holds the call up. */
  gate: (call: string) => Promise<void>;
}

export function memoryFs(): MemoryFs {
  const files = new Map<string, string>();
  const calls: string[] = [];
  let failures: { call: RegExp; code: string; times: number }[] = [];
  const fail = (code: string, call: string) => Object.assign(new Error(`${code}: ${call}`), { code });
  const step = async (call: string) => {
    calls.push(call);
    await fs.gate(call);
    const f = failures.find((x) => x.call.test(call));
    if (f === undefined) return;
    if (--f.times <= 0) failures = failures.filter((x) => x !== f);
    throw fail(f.code, call);
  };
  const text = (data: string | Uint8Array) => (typeof data === 'string' ? data : new TextDecoder().decode(data));
  const none = () => Promise.reject(new Error('memoryFs: not part of this fake'));
  const fs: MemoryFs = {
    files,
    calls,
    gate: async () => undefined,
    failNext: (call, code, times = 1) => void failures.push({ call, code, times }),
    async readFile(path, { bytesMax }) {
      await step(`read ${path}`);
      const found = files.get(path);
      if (found === undefined) throw fail('ENOENT', path);
      if (found.length > bytesMax) throw fail('EFBIG', path);
      return new TextEncoder().encode(found);
    },
    async writeFile(path, data, opts) {
      await step(`write ${path}${opts?.fsync === true ? ' fsync' : ''}`);
      files.set(path, text(data));
    },
    async rename(from, to) {
      await step(`rename ${from} ${to}`);
      const found = files.get(from);
      if (found === undefined) throw fail('ENOENT', from);
      files.delete(from);
      files.set(to, found);
    },
    fsyncDir: (path) => step(`fsyncDir ${path}`),
    mkdirp: async (path) => {
      await step(`mkdirp ${path}`);
      return true;
    },
    readTail: none,
    openRead: none,
    readdir: none,
    stat: none,
    lstat: none,
    readlink: none,
    symlink: none,
    chmod: none,
    unlink: none,
    rmdir: none,
    statfs: none,
  };
  return fs;
}
