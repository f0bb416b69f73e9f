/**
 * Credential programs of a kubeconfig, with real scripts: how often they run, what of their answer counts, and that
 * one which hangs is ended with all that it started.
 */
import { chmodSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createClock } from '../../../src/boot/dependencies/clock.ts';
import { createExecPlugin, EXEC_FRESH_MS, EXEC_REST_MS } from '../../../src/boot/dependencies/kube/execPlugin.ts';
import { parseKubeConfig } from '../../../src/boot/dependencies/kube/kubeconfig.ts';
import { collectingLogger, type LogLine } from '../../supervision/fakePorts.ts';
import { tempDir } from '../helpers.ts';

const V1 = 'client.authentication.k8s.io/v1';
let dir: ReturnType<typeof tempDir>;
let lines: LogLine[] = [];
let skewMs = 0;
const NOW_MS = Date.UTC(2026, 0, 1);
/** Stands still but for what a test adds; limits pass in real time. */
const clock = { ...createClock(), monoMs: () => skewMs, wallMs: () => NOW_MS + skewMs };
beforeEach(() => {
  dir = tempDir();
  lines = [];
  skewMs = 0;
});
afterEach(() => dir[Symbol.dispose]());

const config = (exec: object) =>
  parseKubeConfig(
    JSON.stringify({
      'current-context': 'x',
      contexts: [{ name: 'x', context: { cluster: 'x', user: 'u' } }],
      clusters: [
        { name: 'x', cluster: { server: 'https://api:6443', 'certificate-authority-data': 'Q0E=', 'tls-server-name': 'kubernetes' } },
      ],
      users: [{ name: 'u', user: { exec } }],
    }),
    join(dir.path, 'kubelet.conf'),
  );
/** A shell script; it counts its runs in the file `runs`. */
function plugin(script: string, o: { exec?: object; setTimeout?: (fn: () => void) => void } = {}) {
  chmodSync(dir.write('give', `#!/bin/sh\necho run >>${dir.path}/runs\n${script}\n`), 0o755);
  const file = config({ apiVersion: V1, command: './give', interactiveMode: 'Never', ...o.exec });
  if (file.exec === null) throw new Error('no exec');
  return createExecPlugin(file.exec, {
    clock: o.setTimeout === undefined ? clock : { ...clock, setTimeout: o.setTimeout },
    log: collectingLogger(lines),
    env: { PATH: process.env.PATH, KEPT: 'kept', OVER: 'old' },
    cluster: { server: file.server.href, tlsServerName: file.tlsServerName, ca: async () => Buffer.from('CA') },
  });
}
const runs = async (): Promise<number> => (await readFile(join(dir.path, 'runs'), 'utf8')).trim().split('\n').length;
const credential = (status: object, apiVersion = V1): string =>
  `cat <<'END'\n${JSON.stringify({ apiVersion, kind: 'ExecCredential', status })}\nEND`;

describe('a credential program', () => {
  it('is told what it is asked for, with arguments and environment, and gives a token that is not logged', async () => {
    const script = `printf '%s|%s|%s|%s|%s' "$1" "$2" "$KEPT" "$OVER" "$KUBERNETES_EXEC_INFO" >${dir.path}/said\n${credential({ token: 'hush-hush' })}`;
    const exec = { args: ['--for', 'n 1'], env: [{ name: 'OVER', value: 'new' }], provideClusterInfo: true };
    const it = plugin(script, { exec });
    expect(await it.current()).toMatchObject({ token: 'hush-hush', cert: undefined, expiresMs: Number.POSITIVE_INFINITY });
    const [one, two, kept, over, info = ''] = (await readFile(join(dir.path, 'said'), 'utf8')).split('|');
    expect([one, two, kept, over]).toEqual(['--for', 'n 1', 'kept', 'new']);
    expect(JSON.parse(info)).toEqual({
      apiVersion: V1,
      kind: 'ExecCredential',
      spec: {
        interactive: false,
        cluster: {
          server: 'https://api:6443/',
          'tls-server-name': 'kubernetes',
          'certificate-authority-data': Buffer.from('CA').toString('base64'),
        },
      },
    });
    expect(JSON.stringify(lines)).not.toContain('hush');
  });

  it('that repeats what it was told when it fails is quoted without it', async () => {
    const script = `printf '%s ' "$1" "$2" "$OVER" "$S" "failed" >&2; exit 3`;
    const env = [
      { name: 'OVER', value: 'p w' },
      { name: 'S', value: 'öx' },
    ];
    const it = plugin(script, { exec: { args: ['--key=a1b2', 'one line\nand one more'], env } });
    await expect(it.current()).rejects.toThrow('ended with exit code 3: --key=*** *** *** *** failed');
  });

  it('runs once for many callers, and again when what it gave has ended', async () => {
    const end = new Date(NOW_MS + 600_000).toISOString();
    const it = plugin(credential({ token: 't', expirationTimestamp: end }));
    await Promise.all([it.current(), it.current(), it.current()]);
    await it.current();
    expect(await runs()).toBe(1);
    skewMs = 601_000;
    await expect(it.current()).rejects.toThrow('the credential that it gave has ended already');
    expect(await runs()).toBe(2);
  });

  it('runs again when the server refused what it gave, but not for each refusal', async () => {
    const it = plugin(credential({ token: 't' }));
    expect(it.refused()).toBe(false);
    await it.current();
    expect(it.refused()).toBe(false);
    skewMs = EXEC_FRESH_MS + 1;
    expect(it.refused()).toBe(true);
    await it.current();
    expect(await runs()).toBe(2);
  });

  it('is not run for each call while it fails', async () => {
    const it = plugin('exit 3');
    for (let i = 0; i < 3; i++) await expect(it.current()).rejects.toThrow('ended with exit code 3');
    expect(await runs()).toBe(1);
    skewMs = EXEC_REST_MS + 1;
    await expect(it.current()).rejects.toThrow('exit code 3');
    expect(await runs()).toBe(2);
  });

  it.each([
    ['prints no JSON', 'echo hush', 'printed what is not JSON'],
    ['prints another kind', 'echo "{}"', 'printed no ExecCredential'],
    ['prints another version', credential({ token: 't' }, 'client.authentication.k8s.io/v1beta1'), 'of another version than'],
    ['gives nothing', credential({}), 'neither status.token nor status.clientCertificateData'],
    ['gives half a pair', credential({ clientCertificateData: 'x' }), 'without the other'],
    ['gives no time', credential({ token: 't', expirationTimestamp: 'soon' }), 'is no time'],
    ['gives no text', credential({ token: 7 }), 'status.token that is no text'],
    ['prints without end', 'head -c 2000000 /dev/zero', 'printed more than 1048576 bytes'],
    ['says why', 'echo "no network; token=eyJhbGciOiJSUzI1NiIsImtpZCI6" >&2; exit 1', 'exit code 1: no network; ***'],
    ['is killed', 'kill -9 $$', 'ended with signal SIGKILL'],
  ])('that %s is named with what is wrong', async (_, script, words) => {
    const it = plugin(script, { exec: { installHint: 'get it at example.com' } });
    const error: unknown = await it.current().catch((e: unknown) => e);
    if (!(error instanceof Error)) throw new Error('it went well');
    expect(error.message).toContain(`credential program ${join(dir.path, 'give')}: `);
    expect(error.message).toContain(words);
    expect(error.message).toContain('(get it at example.com)');
    expect(error.message).not.toMatch(/hush|eyJ/);
  });

  it('that is not there is said to be', async () => {
    const it = plugin('true', { exec: { command: 'no-such-program-anywhere' } });
    await expect(it.current()).rejects.toThrow('credential program no-such-program-anywhere: is not there, or not in PATH');
  });

  it('that hangs is ended, and what it started with it', async () => {
    let overdue = (): void => {};
    const it = plugin(`sleep 600 & echo $! >${dir.path}/pid.new; mv ${dir.path}/pid.new ${dir.path}/pid; wait`, {
      setTimeout: (fn) => {
        overdue = fn;
      },
    });
    const call = it.current().catch((e: unknown) => e);
    const pidOf = () => readFile(join(dir.path, 'pid'), 'utf8').catch(() => '');
    await expect.poll(pidOf).toMatch(/^\d+\n$/);
    const pid = Number(await pidOf());
    overdue();
    expect(String(await call)).toContain('gave no answer within 60 s and was killed');
    await expect.poll(() => gone(pid)).toBe(true);
  });
});

/** Ended, or waiting for nobody but init. */
async function gone(pid: number): Promise<boolean> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '');
  return stat === '' || / [ZX] /.test(stat);
}

describe('the exec section of a kubeconfig', () => {
  const exec = (over: object) => () => config({ apiVersion: V1, command: 'x', interactiveMode: 'Never', ...over });
  it.each([
    [
      'of an unknown version',
      { apiVersion: 'client.authentication.k8s.io/v1alpha1' },
      'users[u].user.exec.apiVersion: "client.authentication.k8s.io/v1alpha1" is not one of',
    ],
    ['without a command', { command: '' }, 'users[u].user.exec.command: required'],
    ['without a mode in v1', { interactiveMode: undefined }, 'interactiveMode: required with'],
    ['that wants a person', { interactiveMode: 'Always' }, 'interactiveMode: Always cannot be honoured'],
    ['with an unknown mode', { interactiveMode: 'Sometimes' }, '"Sometimes" is not one of'],
    ['with arguments that are no texts', { args: [1] }, 'args: must be texts'],
    ['with a nameless variable', { env: [{ value: 'hush' }] }, 'env[0].name: required'],
  ])('%s is refused by field', (_, over, words) => {
    expect(exec(over)).toThrow(words);
    expect(exec(over)).not.toThrow(/hush/);
  });
  it('needs no mode in v1beta1, and looks for a bare name in PATH', () => {
    const { exec: parsed } = config({ apiVersion: 'client.authentication.k8s.io/v1beta1', command: 'aws', env: null, args: null });
    expect(parsed).toMatchObject({ command: 'aws', args: [], env: [] });
    expect(config({ apiVersion: V1, command: './give', interactiveMode: 'IfAvailable' }).exec?.command).toBe(join(dir.path, 'give'));
  });
});
