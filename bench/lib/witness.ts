/**
 * Who sees whether an observer changes anything: a proxy of the runtime, strace, and the audit log of the API server, to which it comes with
 * the roles of packaging/observe.
 */
import { createReadStream } from 'node:fs';
import { type ClientHttp2Session, connect, createServer, type Http2Server, type IncomingHttpHeaders } from 'node:http2';
import { connect as dial } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { CRI } from '@actorlet/observe/src/border/table.ts';
import type { ControlPlane } from '../../test/e2e/lab/cluster/controlPlane.ts';
import { type Audit, createAudit } from './audit.ts';

const USER = 'system:serviceaccount:actorlet-observe:actorlet-observe';
const RBAC = join(import.meta.dirname, '../../packaging/observe/rbac.yaml');
const READS: ReadonlySet<string> = new Set(['get', 'list', 'watch']);
/** Calls that change something, but for openat, which is looked at by its flags. */
const CHANGES =
  'openat,open,creat,mkdir,mkdirat,rmdir,unlink,unlinkat,rename,renameat,renameat2,link,linkat,symlink,symlinkat,chmod,fchmodat,chown,lchown,fchownat,truncate,mknod,mknodat,setxattr,lsetxattr,removexattr,utimensat,mount,umount2,move_mount,pivot_root,chroot,setns,unshare,ptrace,kill,tkill,execve,bind';
/** statmount and listmount, which strace does not name before 6.9. */
const UNNAMED_READS: ReadonlySet<string> = new Set(['syscall_0x1c9', 'syscall_0x1ca']);
/** Its hints: a stream, which the table of calls does not have. */
const HINTS = 'GetContainerEvents';
const WRITES = /O_(?:WRONLY|RDWR|CREAT|TRUNC)/;
const END_STREAM = 1;
/** Of any process: nothing is there that lasts. */
const NOWHERE = /^\/(?:dev\/(?:null|tty)|proc\/self\/|proc\/thread-self\/)/;

interface Lab {
  plane: Pick<ControlPlane, 'kubectl' | 'kubeconfig'>;
  /** Of the runtime. */
  socket: string;
  /** Where the proxy's socket and the trace go. */
  dir: string;
  /** The observer's folder. */
  own: string;
}

export class Witness {
  readonly audit: Audit = createAudit('', USER);
  readonly #calls = new Map<string, number>();
  #lab: Lab | undefined;
  #proxy: Http2Server | undefined;

  /** What the observer is started with, and behind which program. */
  async before(lab: Lab): Promise<{ args: readonly string[]; before: readonly string[] }> {
    const socket = join(lab.dir, 'counted.sock');
    if (this.#lab === undefined) {
      this.#lab = lab;
      await lab.plane.kubectl('apply', '-f', RBAC);
      this.#proxy = await criProxy(socket, lab.socket, (method) => add(this.#calls, method));
    }
    const kubeconfig = lab.plane.kubeconfig('observer', { name: USER, groups: ['system:authenticated'] });
    return {
      args: [`--kubeconfig=${kubeconfig}`, `--container-runtime-endpoint=unix://${socket}`],
      before: ['strace', '-f', '--seccomp-bpf', '-qq', '-s', '300', '-e', `trace=${CHANGES}`, '-A', '-o', join(lab.dir, 'trace')],
    };
  }

  /** Each call of the runtime by method, each request by verb, each system call that changed something outside of its folder; `wrong`: those that may not be. */
  async saw(): Promise<{ lines: string[]; wrong: string[] }> {
    if (this.#lab === undefined) throw new Error('no observer was watched');
    const requests = new Map<string, number>();
    for (const { verb, resource } of this.audit.calls()) add(requests, `${verb} ${resource}`);
    const changes = await outside(join(this.#lab.dir, 'trace'), this.#lab.own);
    const verdicts: Readonly<Record<string, string>> = CRI;
    const wrong = [
      ...[...this.#calls.keys()].filter((method) => method !== HINTS && verdicts[method] !== 'read'),
      ...[...requests.keys()].filter((what) => !READS.has(what.split(' ', 1)[0] ?? '')),
      ...[...changes.keys()].filter((what) => !what.startsWith('execve ')),
    ];
    return { lines: [...this.#calls, ...requests, ...changes].map(([what, times]) => `${times} ${what}`), wrong };
  }

  close(): void {
    this.#proxy?.close();
    this.audit.remove();
  }
}

function add(counts: Map<string, number>, what: string): void {
  counts.set(what, (counts.get(what) ?? 0) + 1);
}

/** Passes everything on, and counts the methods. */
async function criProxy(socket: string, target: string, count: (method: string) => void): Promise<Http2Server> {
  let upstream: ClientHttp2Session | undefined;
  // The runtime may start again meanwhile.
  const session = (): ClientHttp2Session => {
    if (upstream !== undefined && !upstream.closed && !upstream.destroyed) return upstream;
    upstream = connect('http://localhost', { createConnection: () => dial(target) });
    upstream.on('error', () => undefined);
    return upstream;
  };
  const server = createServer({ settings: { maxConcurrentStreams: 1_000 } });
  server.on('stream', (stream, headers) => {
    count(String(headers[':path']).split('/').at(-1) ?? '');
    const onward = session().request(headers);
    let last: IncomingHttpHeaders = {};
    onward.on('response', (answer, flags) => {
      const isWhole = (flags & END_STREAM) !== 0;
      stream.respond(answer, isWhole ? { endStream: true } : { waitForTrailers: true });
      if (!isWhole) onward.pipe(stream);
    });
    onward.on('trailers', (trailers) => {
      last = trailers;
    });
    stream.on('wantTrailers', () => stream.sendTrailers(last));
    stream.pipe(onward);
    stream.on('close', () => onward.close());
    for (const one of [stream, onward]) one.on('error', () => stream.close());
  });
  await new Promise<void>((resolve) => server.listen(socket, resolve));
  return server;
}

/** What the observer's calls changed: its own folder apart. */
async function outside(trace: string, own: string): Promise<Map<string, number>> {
  const found = new Map<string, number>();
  for await (const line of createInterface({ input: createReadStream(trace) })) {
    const [, call = '', words = ''] = /^\d+\s+(\w+)\((.*)$/.exec(line) ?? [];
    if (call === '' || UNNAMED_READS.has(call) || / = -1 E/.test(line)) continue;
    if (call.startsWith('open') && !WRITES.test(words)) continue;
    // Signal 0 asks whether a process is there.
    if (/^t?kill$/.test(call) && /, 0\)/.test(words)) continue;
    const paths = [...words.matchAll(/"((?:[^"\\]|\\.)*)"/g)].map(([, path = '']) => path);
    const all = call === 'execve' ? paths.slice(0, 1) : paths;
    if (all.length > 0 && call !== 'execve' && all.every((path) => path.startsWith(own) || NOWHERE.test(path))) continue;
    const what = `${call} ${all.join(' ') || words.slice(0, 80)}`;
    add(found, what);
  }
  return found;
}
