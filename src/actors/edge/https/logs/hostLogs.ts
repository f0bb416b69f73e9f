/** GET /logs/: the files below the host's log folder, with listings. Nothing outside of it, whatever links say. */
import { codeOf } from '../../../../machines/text/errors.ts';
import type { Ports, ReadHandle } from '../../../../ports/ports.ts';
import type { HttpReply, HttpRequest } from '../../../../ports/sockets/net.ts';
import { METHOD_NOT_ALLOWED, text } from '../../answers/answers.ts';

const BLOCK_BYTES = 256 * 1024;
const ENTRIES_MAX = 10_000;

export interface HostLogsOptions {
  ports: Pick<Ports, 'fs'>;
  /** `/var/log`. */
  dir: string;
  /** Folders that links may lead to besides (container logs live elsewhere on some nodes). */
  linked: readonly string[];
}

/** `parts`: the path below /logs/, decoded and split; the caller has refused dots. */
export async function hostLogs(o: HostLogsOptions, req: HttpRequest, parts: readonly string[]): Promise<HttpReply> {
  if (req.method !== 'GET' && req.method !== 'HEAD') return METHOD_NOT_ALLOWED;
  const { fs } = o.ports;
  const path = [o.dir, ...parts].join('/');
  const within = [o.dir, ...o.linked];
  try {
    const info = await fs.lstat(path, { within });
    if (info.kind === 'dir') {
      if (!req.path.endsWith('/')) return { status: 301, headers: { location: `${parts.at(-1) ?? 'logs'}/` }, body: '' };
      return await listing(fs, path, within);
    }
    const file = await fs.openRead(path, { within });
    req.signal.addEventListener('abort', () => void file.close(), { once: true });
    return {
      status: 200,
      headers: { 'content-type': 'text/plain; charset=utf-8', 'cache-control': 'no-store' },
      body: contents(file, (await file.stat()).size, req.signal),
    };
  } catch (error) {
    const code = codeOf(error);
    if (code === 'ENOENT' || code === 'ENOTDIR') return text('404 page not found\n', 404);
    if (code === 'EACCES' || code === 'EPERM' || code === 'EINVAL' || code === 'ELOOP') return text('403 Forbidden\n', 403);
    if (code === 'ENAMETOOLONG') return text('400: the path is too long\n', 400);
    return text(`500: the file cannot be read: ${code}\n`, 500);
  }
}

async function listing(fs: Ports['fs'], path: string, within: readonly string[]): Promise<HttpReply> {
  const lines: string[] = [];
  for (const name of (await fs.readdir(path, { within })).slice(0, ENTRIES_MAX)) {
    const info = await fs.lstat(`${path}/${name}`, { within }).catch(() => null);
    if (info === null || !name.isWellFormed()) continue;
    const shown = info.kind === 'dir' ? `${name}/` : name;
    lines.push(`<a href="./${encodeURIComponent(name)}${info.kind === 'dir' ? '/' : ''}">${escaped(shown)}</a>\n`);
  }
  return {
    status: 200,
    headers: { 'content-type': 'text/html; charset=utf-8' },
    body: `<!doctype html>\n<pre>\n${lines.join('')}</pre>\n`,
  };
}

function escaped(name: string): string {
  const entities: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&#34;', "'": '&#39;' };
  return name.replace(/[&<>"']/g, (c) => entities[c] ?? c);
}

/** As long as it was when it was asked for: a file that grows faster than it is read would have no end. */
export async function* contents(file: ReadHandle, size: number, signal: AbortSignal): AsyncGenerator<Uint8Array> {
  try {
    for (let at = 0; at < size && !signal.aborted; ) {
      const block = await file.read(at, Math.min(BLOCK_BYTES, size - at));
      if (block.length === 0) return;
      yield block;
      at += block.length;
    }
  } finally {
    await file.close();
  }
}
