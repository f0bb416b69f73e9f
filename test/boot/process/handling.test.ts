/** What a process died over, as the next one finds it: real processes that end in every way, and the rule of two strikes. */
import { type ChildProcess, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect } from 'vitest';
import { noteFile, openHandling } from '../../../src/boot/process/handling.ts';
import { loadLibc } from '../../../src/boot/process/libc.ts';
import { STRIKES_WITHIN_MS, SUBJECTS_MAX } from '../../../src/machines/pod/setAside.ts';
import { COMPILED_ONCE } from '../../compiled.ts';
import { pod } from '../../machines/pods/fixtures.ts';
import { BLOCK, until } from '../helpers.ts';
import { it } from '../inFolder.ts';

const SRC = join(import.meta.dirname, '../../../src');
const quiet = { info: () => {}, warn: () => {}, error: () => {} };
const libc = loadLibc();

interface Ended {
  code: number | null;
  signal: NodeJS.Signals | null;
  output: string;
}
/** A process that keeps a note below `root`, and then does what `then` says with `handling`. */
function begin(root: string, then: string): { process: ChildProcess; output(): string; ended: Promise<Ended> } {
  const program = `
    const { openHandling, noteFile } = await import('${SRC}/boot/process/handling.ts');
    const { loadLibc } = await import('${SRC}/boot/process/libc.ts');
    const { startWatchdog } = await import('${SRC}/boot/process/watchdog/watchdog.ts');
    const { Heartbeat } = await import('${SRC}/actors/supervision/watchdog.ts');
    const say = (fields, text) => console.log(text);
    const root = ${JSON.stringify(root)};
    const handling = openHandling({ rootDir: root, libc: loadLibc(), wallMs: () => Date.now(), log: { info: say, warn: say, error: say } });
    const die = () => process.kill(process.pid, 'SIGKILL');
    ${then}
  `;
  const p = spawn(process.execPath, ['--input-type=module-typescript', '-e', program], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, ...COMPILED_ONCE },
  });
  let text = '';
  p.stdout.on('data', (d: Buffer) => (text += d.toString()));
  p.stderr.on('data', (d: Buffer) => (text += d.toString()));
  const ended = new Promise<Ended>((resolve) => p.once('close', (code, signal) => resolve({ code, signal, output: text })));
  return { process: p, output: () => text, ended };
}
const run = (root: string, then: string) => begin(root, then).ended;
/** The next start, at that wall time. */
const next = (root: string, atMs = Date.now()) => openHandling({ rootDir: root, libc, wallMs: () => atMs, log: quiet });
const suspects = (root: string) => readdirSync(join(root, 'actorlet', 'suspects'));
const bad = pod({ containers: [{ name: 'web', image: 'x', args: ['bomb'] }] });
const mended = pod({ containers: [{ name: 'web', image: 'x', args: ['fine'] }] });

describe('a process that dies while it handles a pod', () => {
  it('twice sets it aside, in this definition and under whatever name; another definition is another chance', async ({ dir }) => {
    const died = await run(dir.path, `handling.of('pod other', () => {}); handling.of('pod uid-1', die);`);
    expect(died.signal).toBe('SIGKILL');
    const second = next(dir.path);
    expect(second.podAside(bad)).toBeNull();
    const again = await run(dir.path, `handling.of('pod uid-1', () => { handling.of('file x y', () => {}); die(); });`);
    expect(again.signal).toBe('SIGKILL');
    const third = next(dir.path);
    expect(third.podAside(bad)).toMatch(
      /^the daemon died 2 times while it handled this, last at .*\(killed, .*\); it is tried again when .* or after .*\.json is removed/,
    );
    // A controller's replacement: the same template, another UID and another name of its token's volume.
    const of = (uid: string, name: string, token: string) =>
      pod({ ...bad.spec, volumes: [{ name: `kube-api-access-${token}` }] as never }, { metadata: { uid, name } });
    expect(third.podAside({ ...bad, metadata: { ...bad.metadata, uid: 'uid-2', name: 'q' } })).not.toBeNull();
    expect(third.podAside({ ...bad, metadata: { ...bad.metadata, uid: 'uid-2', namespace: 'theirs' } })).toBeNull();
    expect(third.podAside(of('uid-3', 'r', 'abcde'))).toBeNull();
    expect(third.podAside(mended)).toBeNull();
    expect(suspects(dir.path)).toEqual([]);
    expect(next(dir.path).podAside(bad)).toBeNull();
  });

  it('and goes away by an explicit act: its file is removed', async ({ dir }) => {
    for (let i = 0; i < 2; i++) {
      await run(dir.path, `handling.of('file /m/bad.yaml abc', die);`);
      next(dir.path);
    }
    expect(next(dir.path).documentAside('file /m/bad.yaml abc')).toContain('died 2 times');
    expect(next(dir.path).documentAside('file /m/bad.yaml def')).toBeNull();
    const [file = ''] = suspects(dir.path);
    rmSync(join(dir.path, 'actorlet', 'suspects', file));
    expect(next(dir.path).documentAside('file /m/bad.yaml abc')).toBeNull();
  });

  it('is noted also when an error that nothing caught ends it', async ({ dir }) => {
    const ended = await run(
      dir.path,
      `process.on('uncaughtException', (e) => { handling.died(e); process.exit(70); });
       setImmediate(() => handling.of('pod uid-1', () => { throw new Error('unseen'); }));`,
    );
    expect(ended.code).toBe(70);
    const says: string[] = [];
    const tell = (_: object, text: string) => void says.push(text);
    openHandling({ rootDir: dir.path, libc, wallMs: () => Date.now(), log: { ...quiet, warn: tell } });
    expect(says.join()).toContain('the daemon died while it handled pod uid-1 (an uncaught error)');
  });

  it('is named by the watchdog, which notes what it ended', async ({ dir }) => {
    const ended = await run(
      dir.path,
      `const heartbeat = new Heartbeat();
       startWatchdog({ shared: heartbeat.shared, limitMs: 500, noteFile: noteFile(root) });
       setTimeout(() => heartbeat.begin('node/pods/volumes', 0) ?? handling.of('pod uid-1', () => { ${BLOCK} }), 100);`,
    );
    expect(ended.code).toBe(70);
    expect(ended.output).toContain('running node/pods/volumes (pod uid-1); exiting with code 70');
    const says: string[] = [];
    openHandling({ rootDir: dir.path, libc, wallMs: () => Date.now(), log: { ...quiet, warn: (_, text) => void says.push(text) } });
    expect(says.join()).toContain('pod uid-1 (its main thread was stuck)');
  });
});

describe('a healthy pod is not set aside', () => {
  it('when the process is killed between two of its steps, however often', async ({ dir }) => {
    for (let i = 0; i < 3; i++) {
      expect((await run(dir.path, `handling.of('pod uid-1', () => {}); setTimeout(die, 50);`)).signal).toBe('SIGKILL');
      next(dir.path);
    }
    expect(suspects(dir.path)).toEqual([]);
  });

  it('when its two deaths have an hour between them', ({ dir }) => {
    const at = Date.now();
    const die = (atMs: number) => {
      const handling = next(dir.path, atMs);
      handling.podAside(bad);
      // As if this process had ended here.
      handling.of('pod uid-1', () => writeFileSync(join(dir.path, 'copy'), readNote(dir.path)));
      writeFileSync(noteFile(dir.path), readNote(dir.path, 'copy'));
    };
    die(at);
    die(at + 1_000);
    expect(next(dir.path, at + STRIKES_WITHIN_MS + 1_000).podAside(bad)).toBeNull();
  });

  it('when the whole process was stopped for longer than the limit', async ({ dir }) => {
    const stopped = begin(
      dir.path,
      `const heartbeat = new Heartbeat();
       startWatchdog({ shared: heartbeat.shared, limitMs: 1000, noteFile: noteFile(root) });
       setInterval(() => heartbeat.pulse(performance.now()), 20);
       setTimeout(() => process.exit(3), 6000);
       console.log('runs');`,
    );
    await until('it runs', () => stopped.output().includes('runs'));
    await new Promise((resolve) => setTimeout(resolve, 300));
    stopped.process.kill('SIGSTOP');
    await new Promise((resolve) => setTimeout(resolve, 2_500));
    stopped.process.kill('SIGCONT');
    expect((await stopped.ended).code).toBe(3);
  });
});

it('what is remembered is bounded, and what cannot be read counts as absent', ({ dir }) => {
  const dies = (subject: string) => {
    next(dir.path).of(subject, () => writeFileSync(join(dir.path, 'copy'), readNote(dir.path)));
    writeFileSync(noteFile(dir.path), readNote(dir.path, 'copy'));
    next(dir.path);
  };
  dies('pod 0');
  const [first = ''] = suspects(dir.path);
  const of = (name: string) => join(dir.path, 'actorlet', 'suspects', name);
  const suspect = JSON.parse(readFileSync(of(first), 'utf8')) as { subject: string };
  for (let i = 1; i < SUBJECTS_MAX; i++) {
    const subject = `pod ${i}`;
    const name = createHash('sha256').update(subject).digest('hex').slice(0, first.indexOf('.'));
    writeFileSync(of(`${name}.json`), JSON.stringify({ ...suspect, subject }));
  }
  next(dir.path);
  expect(suspects(dir.path).length).toBe(SUBJECTS_MAX);
  for (let i = 0; i < 3; i++) dies(`pod x${i}`);
  expect(suspects(dir.path).length).toBe(SUBJECTS_MAX);
  writeFileSync(of(suspects(dir.path)[0] ?? ''), '{"subject":');
  writeFileSync(noteFile(dir.path), 'rubbish');
  next(dir.path);
});

function readNote(root: string, file?: string): Buffer {
  return readFileSync(file === undefined ? noteFile(root) : join(root, file));
}
