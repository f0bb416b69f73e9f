/** `actorctl try` as a person runs it: what it prints, and the exit codes it ends with. */
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { runCtl } from '@actorlet/ctl/src/cli.ts';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';

let dir = '';
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'actorlet-trying-'));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

function file(name: string, text: string): string {
  writeFileSync(join(dir, name), text);
  return join(dir, name);
}
const pod = (name: string, script: string, spec = ''): string =>
  `apiVersion: v1\nkind: Pod\nmetadata:\n  name: ${name}\n  annotations: {actorlet.dev/hollow: "${script}"}\nspec:\n  containers: [{name: app, image: x}]\n${spec}`;

async function tryIt(argv: string[], o: { signal?: AbortSignal; onOut?: (all: string) => void } = {}) {
  let out = '';
  let err = '';
  const code = await runCtl({
    argv: ['try', ...(argv.includes('--runtime') ? [] : ['--runtime', 'hollow']), ...argv],
    env: {},
    out: (t) => {
      out += t;
      o.onOut?.(out);
    },
    err: (t) => {
      err += t;
    },
    exists: () => false,
    columns: 0,
    nowMs: () => Date.now(),
    stdin: Readable.from([]),
    outBytes: () => undefined,
    errBytes: () => undefined,
    signal: o.signal ?? new AbortController().signal,
  });
  return { code, out, err };
}

describe('actorctl try', { timeout: 240_000 }, () => {
  it('ends with 0 when everything held, with a timeline and times', async () => {
    const pods = file('pods.yaml', `${pod('web', 'run=forever')}---\n${pod('job', 'run=100ms', '  restartPolicy: Never\n')}`);
    const { code, out, err } = await tryIt([
      '-f',
      pods,
      '-e',
      'web phase=Running within 60s',
      '-e',
      'job phase=Succeeded within 60s',
      '-e',
      'restarts=0 for 1s',
    ]);
    expect([code, err], out).toEqual([0, '']);
    expect(out).toMatch(/^ +\+\d+\.\d{3}s {2}node {9}up: hollow runtime, process \d+\n/);
    expect(out).toMatch(/ manifest {5}web: manifest applied\n/);
    expect(out).toMatch(/ container {4}web: app running\n/);
    expect(out).toMatch(/ expectation {2}job: held: job phase=Succeeded within 60s\n/);
    expect(out).toMatch(/^web: taken on after \d+\.\d\ds, started \d+\.\d\ds, ready \d+\.\d\ds$/m);
    expect(out.match(/^held /gm)).toHaveLength(4);
  });

  it('ends with 1 and the reason when something did not', async () => {
    const junit = join(dir, 'junit.xml');
    const job = file('job.yaml', pod('job', 'run=100ms,exit=3', '  restartPolicy: Never\n'));
    const { code, out } = await tryIt(['-f', job, '--junit', junit]);
    expect(code, out).toBe(1);
    expect(readFileSync(junit, 'utf8')).toMatch(
      /<testsuite name="actorctl try" tests="1" failures="1" errors="0" [\s\S]*<testcase classname="job" name="ready or Succeeded" [^>]*>\s*<failure message="[^"]+">/,
    );
    expect(out).toMatch(/^NOT HELD {2}job {2}ready or Succeeded /m);
    expect(out).toMatch(/last seen: Failed, .*app: exited 3 \(Error\)/);
  });

  it('finds a crash loop with conditions about staying, whatever it was at the first look', async () => {
    const loop = file('loop.yaml', pod('loop', 'run=1s,exit=3'));
    const { code, out } = await tryIt(['-f', loop, '-e', 'loop restarts=0', '-e', 'loop restarts=0 within 30s', '-e', 'loop restarts<1']);
    expect(code, out).toBe(1);
    expect(out).toMatch(/^NOT HELD {2}loop {2}loop restarts=0 {2}/m);
    expect(out).toMatch(/^NOT HELD {2}loop {2}loop restarts<1 /m);
    // Somebody who writes a time to reach it in is taken at his word.
    expect(out).toMatch(/^held {6}loop {2}loop restarts=0 within 30s /m);
  });

  it('injects once the pods are up, and counts times from then', async () => {
    const faults = file(
      'faults.yaml',
      'apiVersion: actorlet.dev/v1alpha1\nkind: FaultScenario\nmetadata: {name: away}\nspec:\n  faults:\n  - {name: gone, kind: runtime.down, for: 1s}\n',
    );
    const pods = file('web.yaml', pod('web', 'run=forever'));
    const { code, out } = await tryIt([
      '-f',
      pods,
      '--inject',
      faults,
      '-e',
      'web phase=Running for 2s',
      '-e',
      'web ready within 60s',
      '--json',
    ]);
    const answer = JSON.parse(out) as { ok: boolean; outcomes: { held: boolean }[]; timeline: { kind: string; what: string }[] };
    expect([code, answer.ok, answer.outcomes.map((o) => o.held)]).toEqual([0, true, [true, true]]);
    const order = answer.timeline.filter((e) => e.what === 'ready' || e.kind === 'fault').map((e) => e.what);
    expect(order[0]).toBe('ready');
    expect(order[1]).toMatch(/^injected away-\d+: gone/);
  });

  it('ends with 2 when it cannot be tried, and says why', async () => {
    const web = file('web.yaml', pod('web', 'run=forever'));
    const wrong: [string[], string][] = [
      [[], 'say which manifests with -f'],
      [['-f', join(dir, 'nosuch.yaml')], 'nosuch.yaml does not exist'],
      [['-f', web, '-e', 'phase=Runing'], '"Runing" is no phase'],
      [['-f', web, '--junit', join(dir, 'nosuch', 'a.xml')], 'nosuch/a.xml does not exist'],
      [['-f', web, '--settle', 'soon'], '--settle: "soon" is no time'],
      [['-f', web, '--runtime', 'docker'], '--runtime is process, oci, hollow or containerd, not docker'],
      [['-f', web, '--endpoint', '/x'], 'endpoint: runtime hollow has none'],
      [['-f', file('bad.yaml', pod('bad', 'run=forever', '  restartPolicy: Sometimes\n'))], 'bad.yaml: spec.restartPolicy'],
      [['-f', web, '-e', 'other ready'], 'no manifest holds a pod other; there are web'],
      [['-f', web, '--settle', '0s', '--inject', file('none.yaml', 'kind: FaultScenario\n')], 'apiVersion: is missing'],
    ];
    for (const [argv, why] of wrong) {
      const { code, err } = await tryIt(argv);
      expect([argv, code, err]).toEqual([argv, 2, expect.stringContaining(why)]);
    }
  });

  it('removes the node when it is interrupted', async () => {
    const stop = new AbortController();
    let pid = 0;
    const onOut = (all: string): void => {
      pid ||= Number(/process (\d+)/.exec(all)?.[1] ?? 0);
      if (all.includes('web: app running')) stop.abort();
    };
    const web = file('web.yaml', pod('web', 'run=forever'));
    const { code, err } = await tryIt(['-f', web, '-e', 'phase=Succeeded within 10m'], { signal: stop.signal, onOut });
    expect([code, err]).toEqual([130, expect.stringContaining('the node and its pods are removed')]);
    expect(pid).toBeGreaterThan(0);
    expect(readdirSync('/proc')).not.toContain(String(pid));
  });
});
