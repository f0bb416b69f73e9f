/**
 * That an observer changes nothing: minutes of churn beside the reference kubelet, with the observer behind a proxy of the runtime,
 * under strace, and with the roles of packaging/observe. Prints each call of the runtime by method, each request to the API server by
 * verb, and each system call that changes something outside of its own folder. The exit code is 1 where there is one.
 *   ... scripts/node test/reference/observed/proof.ts [MINUTES] [PODS-AT-ONCE]
 */
import { createReadStream, readFileSync } from 'node:fs';
import { type ClientHttp2Session, connect, createServer, type Http2Server, type IncomingHttpHeaders } from 'node:http2';
import { connect as dial } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { CRI } from '@actorlet/observe/src/border/table.ts';
import { createAudit } from '../../../bench/lib/audit.ts';
import { churn } from './churning.ts';
import { judgedOf, ledgerLines, type ObservedLab, withObservedLab } from './lab.ts';

const USER = 'system:serviceaccount:actorlet-observe:actorlet-observe';
const RBAC = join(import.meta.dirname, '../../../packaging/observe/rbac.yaml');
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

const [, , minutes = '3', atOnce = '6'] = process.argv;
const counts = new Map<string, number>();
const count = (what: string): void => void counts.set(what, (counts.get(what) ?? 0) + 1);

/** Passes everything on, and counts the methods. */
async function criProxy(socket: string, target: string): Promise<Http2Server> {
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
    count(`CRI ${String(headers[':path']).split('/').at(-1)}`);
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
    found.set(what, (found.get(what) ?? 0) + 1);
  }
  return found;
}

const audit = createAudit('', USER);
let [trace, own] = ['', ''];
let proxy: Http2Server | undefined;
const prepare = async ({ cluster, observer }: Pick<ObservedLab, 'cluster' | 'observer'>) => {
  await cluster.kubectl('apply', '-f', RBAC);
  const socket = join(cluster.daemon.dir, 'counted.sock');
  proxy = await criProxy(socket, cluster.lab.socket);
  [trace, own] = [join(cluster.daemon.dir, 'trace'), observer.folder];
  const kubeconfig = cluster.plane.kubeconfig('observer', { name: USER, groups: ['system:authenticated'] });
  return {
    args: [`--kubeconfig=${kubeconfig}`, `--container-runtime-endpoint=unix://${socket}`],
    before: ['strace', '-f', '--seccomp-bpf', '-qq', '-s', '300', '-e', `trace=${CHANGES}`, '-o', trace],
  };
};
await withObservedLab(
  {},
  async (lab) => {
    const ledger = await churn(lab, { minutes: Number(minutes), atOnce: Number(atOnce) });
    // It is the child of strace, which ends with it.
    const [pid = ''] = readFileSync(`/proc/${lab.observer.pid}/task/${lab.observer.pid}/children`, 'utf8').split(' ');
    process.kill(Number(pid), 'SIGTERM');
    await lab.observer.end();
    const requests = new Map<string, number>();
    for (const { verb, resource } of audit.calls()) requests.set(`${verb} ${resource}`, (requests.get(`${verb} ${resource}`) ?? 0) + 1);
    const changes = await outside(trace, own);
    const wrong = [
      ...[...counts.keys()].filter(
        (what) => what.startsWith('CRI ') && what.slice(4) !== HINTS && (CRI as Readonly<Record<string, string>>)[what.slice(4)] !== 'read',
      ),
      ...[...requests.keys()].filter((what) => !READS.has(what.split(' ', 1)[0] ?? '')),
      ...[...changes.keys()].filter((what) => !what.startsWith('execve ')),
    ];
    for (const [what, times] of [...counts, ...requests, ...changes]) console.log(`${times} ${what}`);
    for (const line of ledgerLines(ledger)) console.log(line);
    console.log(`${judgedOf(ledger)} judged; ${wrong.length === 0 ? 'nothing was changed' : `changed:\n${wrong.join('\n')}`}`);
    if (wrong.length > 0) process.exitCode = 1;
  },
  { audit, prepare },
);
proxy?.close();
process.exit();
