/** Lifecycle hooks and restart rules on a real containerd: each kind, its order, what it says when it cannot run, and recovery. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import type { Container, PodSpec } from '../../../src/machines/kube/podTable.ts';
import { freePort } from '../../freePort.ts';
import type { Daemon, PodView } from '../daemon.ts';
import type { Containerd } from '../lab/containerd.ts';
import { manifest, sh, steady } from '../manifests.ts';
import { onContainerd } from '../onContainerd.ts';
import { containers } from '../runtime.ts';

const WAIT_MS = 90_000;

let lab: Containerd;
let daemon: Daemon;
let evidence: string;
const servers: Server[] = [];

onContainerd((made) => {
  ({ lab, daemon } = made);
  evidence = mkdtempSync(join(tmpdir(), 'actorlet-hooks-'));
});
afterAll(async () => {
  for (const server of servers) server.closeAllConnections();
  await Promise.all(servers.map((server) => new Promise((done) => server.close(done))));
  rmSync(evidence, { recursive: true, force: true });
});

/** A server on loopback that answers 500; what it was asked. */
async function serve(port = 0): Promise<{ port: number; asked: { url: string; headers: IncomingHttpHeaders }[] }> {
  const asked: { url: string; headers: IncomingHttpHeaders }[] = [];
  const server = createServer((req, res) => {
    asked.push({ url: req.url ?? '', headers: req.headers });
    res.statusCode = 500;
    res.end('no');
  });
  servers.push(server);
  await new Promise<void>((done) => server.listen(port, '127.0.0.1', done));
  const address = server.address();
  return { port: typeof address === 'object' && address !== null ? address.port : 0, asked };
}

/** The container writes to /e/log, which outlives it. */
function witness(name: string, container: (mount: Partial<Container>) => Container[], spec: Partial<PodSpec> = {}, uid?: string): object {
  mkdirSync(join(evidence, name));
  return manifest(name, container({ volumeMounts: [{ name: 'e', mountPath: '/e' }] }), {
    ...(uid === undefined ? {} : { uid }),
    spec: { terminationGracePeriodSeconds: 30, volumes: [{ name: 'e', hostPath: { path: join(evidence, name) } }], ...spec },
  });
}
const log = (name: string): string[] =>
  readFileSync(join(evidence, name, 'log'), 'utf8')
    .split('\n')
    .filter(Boolean);
const LOOP = 'while :; do sleep 1; done';
const shell = (script: string) => ({ exec: { command: ['sh', '-c', script] } });
const waiting = (p: { status: { containerStatuses?: { state: { waiting?: { reason?: string; message?: string } } }[] } }) =>
  p.status.containerStatuses?.[0]?.state.waiting;
async function said(pod: string, reason: string, words: RegExp): Promise<void> {
  await daemon.wait(
    `event ${reason} of ${pod} like ${words}`,
    async () => (await daemon.events(pod)).some((e) => e.reason === reason && words.test(e.message)),
    { timeoutMs: WAIT_MS },
  );
}
async function ended(pod: string): Promise<void> {
  await daemon.wait(`${pod} to have ended`, async () => !(await containers(lab, pod)).some((c) => c.running), { timeoutMs: WAIT_MS });
}

describe.concurrent('hooks', () => {
  it('by exec: postStart before the next container, preStop to its end before TERM', async () => {
    const script = `echo begins >> /e/log; trap "echo term >> /e/log; exit 0" TERM; ${LOOP}`;
    const lifecycle = {
      postStart: shell('sleep 2; echo started >> /e/log'),
      preStop: shell('echo stopping >> /e/log; sleep 2; echo stopped >> /e/log'),
    };
    daemon.put(
      'exec.json',
      witness('exec', (m) => [
        sh('first', script, { ...m, lifecycle }),
        sh('second', `echo second >> /e/log; trap "exit 0" TERM; ${LOOP}`, m),
      ]),
    );
    await daemon.phase('exec', 'Running', WAIT_MS);
    await daemon.wait('the second container to have begun', async () => log('exec').includes('second'), { timeoutMs: WAIT_MS });
    expect(log('exec')).toEqual(['begins', 'started', 'second']);
    daemon.remove('exec.json');
    await ended('exec');
    expect(log('exec').slice(3)).toEqual(['stopping', 'stopped', 'term']);
  });

  it('over HTTP: any answer will do, with the headers that were asked for', async () => {
    const server = await serve();
    const httpGet = { host: '127.0.0.1', port: server.port, path: '/hook', httpHeaders: [{ name: 'X-Why', value: 'test' }] };
    daemon.put('http.json', manifest('http', [steady('main', { lifecycle: { postStart: { httpGet }, preStop: { httpGet } } })]));
    await daemon.phase('http', 'Running', WAIT_MS);
    daemon.remove('http.json');
    await ended('http');
    expect(server.asked).toHaveLength(2);
    expect(server.asked[0]).toMatchObject({
      url: '/hook',
      headers: { 'x-why': 'test', accept: '*/*', 'user-agent': expect.stringMatching(/^kube-lifecycle\//) },
    });
  });

  it('over HTTPS that is answered without TLS: asked once more over HTTP, without credentials, and that is said', async () => {
    const server = await serve();
    const httpHeaders = [{ name: 'Authorization', value: 'Bearer hunter2' }];
    const httpGet = { host: '127.0.0.1', port: server.port, path: '/hook', scheme: 'HTTPS', httpHeaders };
    daemon.put('https.json', manifest('https', [steady('main', { lifecycle: { postStart: { httpGet } } })]));
    await daemon.phase('https', 'Running', WAIT_MS);
    await said('https', 'LifecycleHTTPFallback', /got HTTP response, retry with HTTP succeeded/);
    expect(server.asked).toHaveLength(1);
    expect(server.asked[0]?.headers.authorization).toBeUndefined();
    expect(daemon.log()).not.toContain('hunter2');
  });

  it('over HTTP where nobody listens: said, the container ended, and up again once somebody does', async () => {
    const port = await freePort();
    const httpGet = { host: '127.0.0.1', port, path: '/' };
    daemon.put('refused.json', manifest('refused', [steady('main', { lifecycle: { postStart: { httpGet } } })]));
    const pod = await daemon.podWhere('refused', 'its reason to show', (p) => waiting(p)?.reason === 'PostStartHookError', WAIT_MS);
    expect(waiting(pod)?.message).toContain('ECONNREFUSED');
    await said('refused', 'FailedPostStartHook', /ECONNREFUSED/);
    await serve(port);
    await daemon.phase('refused', 'Running', WAIT_MS);
  });

  it('that sleep: TERM comes when the time is over', async () => {
    const script = `trap "echo term >> /e/log; exit 0" TERM; ${LOOP}`;
    daemon.put(
      'sleep.json',
      witness('sleep', (m) => [sh('main', script, { ...m, lifecycle: { preStop: { sleep: { seconds: 3 } } } })]),
    );
    await daemon.phase('sleep', 'Running', WAIT_MS);
    const began = Date.now();
    daemon.remove('sleep.json');
    await ended('sleep');
    expect(Date.now() - began).toBeGreaterThanOrEqual(3_000);
    expect(log('sleep')).toEqual(['term']);
  });

  it('that only open a connection are taken, and fail', async () => {
    daemon.put('dial.json', manifest('dial', [steady('main', { lifecycle: { postStart: { tcpSocket: { port: 80 } } } })]));
    await daemon.podWhere('dial', 'its reason to show', (p) => waiting(p)?.reason === 'PostStartHookError', WAIT_MS);
    await said('dial', 'FailedPostStartHook', /invalid handler/);
  });

  it('that hang longer than the grace: TERM all the same, which is said, and they run on until the container ends', async () => {
    const script = `trap "echo term >> /e/log" TERM; ${LOOP}`;
    const preStop = shell('while :; do echo hook >> /e/log; sleep 0.2; done');
    const main = (m: object) => [sh('main', script, { ...m, lifecycle: { preStop } })];
    daemon.put('hang.json', witness('hang', main, { terminationGracePeriodSeconds: 3 }));
    await daemon.phase('hang', 'Running', WAIT_MS);
    daemon.remove('hang.json');
    await ended('hang');
    await said('hang', 'FailedPreStopHook', /did not end within 3 s/);
    expect(log('hang').indexOf('hook', log('hang').indexOf('term'))).toBeGreaterThan(0);
  });

  it('whose command is not there: said, and up again with a definition that has one', async () => {
    const of = (command: string): object =>
      manifest('absent', [steady('main', { lifecycle: { postStart: { exec: { command: [command] } } } })], { uid: 'e2e-hook-absent' });
    daemon.put('absent.json', of('/no/such/command'));
    const pod = await daemon.podWhere('absent', 'its reason to show', (p) => waiting(p)?.reason === 'PostStartHookError', WAIT_MS);
    expect(waiting(pod)?.message).toContain('/no/such/command');
    await said('absent', 'FailedPostStartHook', /cannot run the command/);
    daemon.put('absent.json', of('/bin/true'));
    await daemon.phase('absent', 'Running', WAIT_MS);
  });
});

describe.concurrent('restart rules', () => {
  it('start a container of a Never pod again after the codes they name, and after no other', async () => {
    const script = 'if [ -f /e/log ]; then exit 1; fi; echo once >> /e/log; exit 42';
    const restartPolicyRules = [{ action: 'Restart', exitCodes: { operator: 'In', values: [42] } }];
    daemon.put(
      'rules.json',
      witness('rules', (m) => [sh('main', script, { ...m, restartPolicy: 'Never', restartPolicyRules })], { restartPolicy: 'Never' }),
    );
    const pod = await daemon.phase('rules', 'Failed', WAIT_MS);
    expect(pod.status.containerStatuses?.[0]).toMatchObject({ restartCount: 1, state: { terminated: { exitCode: 1 } } });
  });
});

describe('a restart that a person asks for', () => {
  it('runs the hook, then TERM, and keeps the sandbox; a daemon that is killed during the hook leaves the pod as it was', async () => {
    const script = (name: string) =>
      `echo ${name} begins >> /e/log; trap "echo ${name} term >> /e/log; exit 0" TERM; while :; do sleep 0.1; done`;
    const lifecycle = { preStop: shell('echo stopping >> /e/log; sleep 2') };
    const of = (m: Partial<Container>) => [sh('main', script('main'), { ...m, lifecycle })];
    const side = { ...sh('side', script('side')), restartPolicy: 'Always' as const, volumeMounts: [{ name: 'e', mountPath: '/e' }] };
    daemon.put('again.json', witness('again', of, { restartPolicy: 'OnFailure', initContainers: [side] }));
    const both = (restarts: number) => (p: PodView) => {
      const { initContainerStatuses: inits = [], containerStatuses: regular = [] } = p.status;
      const all = [...inits, ...regular];
      return all.length === 2 && all.every((c) => c.ready && c.restartCount === restarts);
    };
    const before = await daemon.podWhere('again', 'both to run', both(0), WAIT_MS);
    expect(await daemon.ctl('restart', 'pod', 'again')).toMatch(/^pod "again-\S+" restarted in default namespace\n$/);
    const after = await daemon.podWhere('again', 'both to have restarted', both(1), WAIT_MS);
    expect(after.status.podIP).toBe(before.status.podIP);
    // Which of two programs writes first is their own matter.
    const begin = ['main begins', 'side begins'];
    await daemon.wait('both to have begun again', async () => log('again').length === 7, { timeoutMs: WAIT_MS });
    const once = log('again');
    const [first, end, again] = [once.slice(0, 2), once.slice(2, 5), once.slice(5)];
    expect([first.sort(), end, again.sort()]).toEqual([begin, ['stopping', 'main term', 'side term'], begin]);
    await said('again', 'Killing', /Container main will be restarted: a person asked for it over the admin socket/);
    await daemon.ctl('restart', 'pod/again', '--no-wait');
    await daemon.wait('the hook to run', async () => log('again').length === once.length + 1, { timeoutMs: WAIT_MS });
    await daemon.end('SIGKILL');
    await daemon.start();
    await daemon.podWhere('again', 'both to run', both(1), WAIT_MS);
    await daemon.ctl('restart', 'pod', 'again', '-c', 'main');
    await daemon.wait('main to have ended', async () => log('again').slice(once.length).includes('main term'), { timeoutMs: WAIT_MS });
    expect(log('again').slice(once.length)).not.toContain('side term');
    daemon.remove('again.json');
    await ended('again');
  });
});
