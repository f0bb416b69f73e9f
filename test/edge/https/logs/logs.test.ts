/** Logs of containers and of the host: options, runs, following over rotations, and no way out of their folders. */
import { appendFileSync, mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { request } from 'node:https';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { podsView } from '../../../../src/machines/pods/manager/messages.ts';
import { statusesView } from '../../../../src/machines/pods/status/messages.ts';
import { until } from '../../harness.ts';
import { record, running, statusView, viewOfPods } from '../../metrics/samples.ts';
import { type Lab, serverCa } from '../lab.ts';
import { ann, say, start, uid, WAIT_MS, web } from '../node.ts';

const it = test.extend('s', () => start());

describe('container logs', () => {
  const STAMP = '2026-01-01T00:00:00.000000000Z';
  const lines = (...texts: string[]) => texts.map((t) => `${STAMP} stdout F ${t}\n`).join('');
  const logDir = (dir: string, container = 'main') => join(dir, 'pods', `default_web_${uid}`, container);
  function put(dir: string, name: string, text: string, container = 'main'): string {
    mkdirSync(logDir(dir, container), { recursive: true });
    writeFileSync(join(logDir(dir, container), name), text);
    return join(logDir(dir, container), name);
  }
  /** A followed log: what has come so far, and its end. */
  function follow(lab: Lab, query: string) {
    const got = { text: '', ended: false, status: 0 };
    const req = request({
      ...{ host: '127.0.0.1', port: lab.port, path: `/containerLogs/default/web/main?follow=true${query}` },
      ...{ ca: serverCa.pem, agent: false as const, ...ann },
    });
    req.on('error', () => undefined);
    req.on('response', (res) => {
      got.status = res.statusCode ?? 0;
      res.on('data', (d: Buffer) => {
        got.text += d.toString();
      });
      res.on('error', () => undefined);
      res.on('close', () => {
        got.ended = true;
      });
    });
    req.end();
    onTestFinished(() => void req.destroy());
    return { got, leave: () => req.destroy() };
  }

  it('give a file with the options of the query', async ({ s }) => {
    put(s.dir, '0.log', `${lines('one', 'two')}${STAMP} stdout P thr\n${STAMP} stdout F ee\n${STAMP} stdout F torn`);
    const get = async (query: string) => (await s.ask(`/containerLogs/default/web/main?${query}`)).body;
    expect(await get('')).toBe('one\ntwo\nthree\ntorn\n');
    // Lines of the file, in which the partial one counts, and the torn one does not (trap 35).
    expect(await get('tailLines=1')).toBe('ee\n');
    expect(await get('tailLines=0')).toBe('');
    expect(await get('tailLines=100')).toBe('one\ntwo\nthree\ntorn\n');
    // Time stamps count, and the cut is where it falls (trap 34).
    expect(await get('limitBytes=5&timestamps=true')).toBe('2026-');
    expect((await s.ask('/containerLogs/default/web/main?tailLines=x')).status).toBe(400);
    expect((await s.ask('/containerLogs/default/web/main?limitBytes=0')).status).toBe(422);
  });
  it('have tails over many blocks', async ({ s }) => {
    put(s.dir, '0.log', lines(...Array.from({ length: 9_000 }, (_, i) => `line ${i}`)));
    const tail = (await s.ask('/containerLogs/default/web/main?tailLines=4000')).body.trim().split('\n');
    expect([tail.length, tail[0], tail.at(-1)]).toEqual([4000, 'line 5000', 'line 8999']);
  });
  it('have lines of any length', async ({ s }) => {
    const [long, longer] = ['x'.repeat(1_500_000), 'y'.repeat(3_000_000)];
    put(s.dir, '0.log', lines('one', long, 'two', longer));
    const { body } = await s.ask('/containerLogs/default/web/main?timestamps=true');
    const given = body.split('\n').map((line) => `${line.slice(0, STAMP.length + 4)} ${line.length}`);
    const of = (text: string) => `${STAMP} ${text.slice(0, 3)} ${STAMP.length + 1 + text.length}`;
    expect(given).toEqual([of('one'), of(long), of('two'), of(longer), ' 0']);
  });
  it('are of the run that is meant', async ({ s }) => {
    put(s.dir, '2.log', lines('second'));
    put(s.dir, '3.log', lines('third'));
    const get = async (query = '') => (await s.ask(`/containerLogs/default/web/main?${query}`)).body;
    const ended = { terminated: { exitCode: 1, reason: 'Error', startedAt: STAMP, finishedAt: STAMP } };
    say(s.lab, { main: { restartCount: 3, state: { running: { startedAt: STAMP } }, lastState: ended } });
    expect([await get(), await get('previous=true')]).toEqual(['third\n', 'second\n']);
    // Waiting for its next start, the last run is both the present and the previous one.
    say(s.lab, { main: { restartCount: 3, state: { waiting: { reason: 'CrashLoopBackOff' } }, lastState: ended } });
    expect([await get(), await get('previous=true')]).toEqual(['third\n', 'third\n']);
  });
  it('that cannot be say why, and never as an empty answer (trap 37)', async ({ s }) => {
    const status = async (path: string) => {
      const answer = await s.ask(`/containerLogs/${path}`);
      return `${answer.status} ${answer.body.trim()}`;
    };
    say(s.lab, { main: { state: { waiting: { reason: 'ErrImagePull' } } } });
    expect(await status('default/web/main')).toMatch(/^400 .*image can't be pulled/);
    expect(await status('default/web/side')).toMatch(/^400 .*no status yet/);
    say(s.lab, { main: { state: { running: { startedAt: STAMP } } } });
    expect(await status('default/web/main')).toMatch(/^400 .*does not exist/);
    expect(await status('default/web/main?previous=true')).toMatch(/^400 previous terminated container "main" in pod "web" not found/);
    expect(await status('default/web/other')).toMatch(/^404 /);
    expect(await status('default/none/main')).toMatch(/^404 pod "none" does not exist/);
    expect(await status('default/orphan/web')).toMatch(/^404 /);
    for (const path of ['', 'default', 'default/web']) expect(await status(path)).toBe('404 404: Page Not Found');
  });
  it('do not leave their folder, by a path or by a link', async ({ s }) => {
    const secret = join(s.dir, 'tls.key');
    for (const path of [
      'default/web/..',
      '../../tls.key',
      'default/web/%2e%2e',
      'default/web%2f..%2f..%2ftls.key/main',
      'default/web/main%00',
      'default/web/a%5cb',
    ]) {
      const answer = await s.ask(`/containerLogs/${path}`);
      expect([path, answer.status]).toEqual([path, 400]);
      expect(answer.body).not.toContain('PRIVATE KEY');
    }
    mkdirSync(logDir(s.dir), { recursive: true });
    symlinkSync(secret, join(logDir(s.dir), '0.log'));
    const answer = await s.ask('/containerLogs/default/web/main');
    expect(answer.status).toBe(400);
    expect(answer.body).not.toContain('PRIVATE KEY');
  });
  it('are followed as they grow, over a rotation, to the end of the container', async ({ s }) => {
    const file = put(s.dir, '0.log', lines('one', 'two'));
    const { got } = follow(s.lab, '&tailLines=1');
    await until(() => got.text === 'two\n', WAIT_MS);
    appendFileSync(file, lines('three'));
    await until(() => got.text === 'two\nthree\n', WAIT_MS);
    // As a runtime rotates: what was written last is still given, then the new file from its beginning.
    appendFileSync(file, lines('four'));
    renameSync(file, `${file}.20260101`);
    writeFileSync(file, lines('five'));
    await until(() => got.text.endsWith('four\nfive\n'), WAIT_MS);
    appendFileSync(file, lines('six'));
    // The end of the container, and a line that shows up only after it.
    appendFileSync(file, lines('seven'));
    say(s.lab, { main: { state: { terminated: { exitCode: 0, reason: 'Completed', startedAt: STAMP, finishedAt: STAMP } } } });
    await until(() => got.ended, WAIT_MS);
    expect(got.text).toBe('two\nthree\nfour\nfive\nsix\nseven\n');
  });
  it('are followed to their end when the pod goes: what was written last is given', async ({ s }) => {
    // As the API server sends a pod whose container runs: that status is in the record, and is the oldest there is.
    const containerStatuses = [
      {
        name: 'main',
        ready: true,
        restartCount: 0,
        image: 'busybox',
        imageID: 'i',
        state: { running: { startedAt: STAMP } },
        lastState: {},
      },
    ];
    const ofApi = record({ ...web, status: { ...running, containerStatuses } });
    s.lab.registry.set(podsView, viewOfPods([ofApi]));
    const file = put(s.dir, '0.log', lines('one'));
    const { got } = follow(s.lab, '');
    await until(() => got.text === 'one\n', WAIT_MS);
    appendFileSync(file, lines('bye'));
    rmSync(logDir(s.dir), { recursive: true });
    s.lab.registry.set(statusesView, statusView({}));
    s.lab.registry.set(podsView, viewOfPods([]));
    await until(() => got.ended, WAIT_MS);
    expect(got.text).toBe('one\nbye\n');
  });
  it('end with the life of a pod, not with that of its successor under the same UID', async ({ s }) => {
    put(s.dir, '0.log', lines('one'));
    const run = (containerID: string) => ({ main: { containerID, state: { running: { startedAt: STAMP } } } });
    say(s.lab, run('containerd://a'));
    const { got } = follow(s.lab, '');
    await until(() => got.text === 'one\n', WAIT_MS);
    say(s.lab, run('containerd://b'));
    await until(() => got.ended, WAIT_MS);
  });
  it('end when they were limited, and when the client leaves', async ({ s }) => {
    const file = put(s.dir, '0.log', lines('one'));
    const limited = follow(s.lab, '&limitBytes=6');
    await until(() => limited.got.text === 'one\n', WAIT_MS);
    appendFileSync(file, lines('two'));
    await until(() => limited.got.ended, WAIT_MS);
    expect(limited.got.text).toBe('one\ntw');
    const left = follow(s.lab, '');
    await until(() => left.got.text !== '', WAIT_MS);
    left.leave();
    await s.actor.stop();
  });
});

describe("the host's logs", () => {
  it('are listed and given, and nothing outside of them', async ({ s }) => {
    mkdirSync(join(s.dir, 'log', 'sub <b>'));
    writeFileSync(join(s.dir, 'log', 'sys.log'), 'hello');
    symlinkSync('/etc/passwd', join(s.dir, 'log', 'escape'));
    symlinkSync('sys.log', join(s.dir, 'log', 'inside'));
    symlinkSync(s.dir, join(s.dir, 'log', 'up'));
    const list = await s.ask('/logs/');
    expect(list.status).toBe(200);
    expect(list.body).toContain('<a href="./sys.log">sys.log</a>');
    expect(list.body).toContain('<a href="./sub%20%3Cb%3E/">sub &lt;b&gt;/</a>');
    expect(await s.ask('/logs/sys.log')).toMatchObject({ status: 200, body: 'hello' });
    expect(await s.ask('/logs/inside')).toMatchObject({ status: 200, body: 'hello' });
    expect(await s.ask('/logs/sub%20%3Cb%3E')).toMatchObject({ status: 301, headers: { location: 'sub <b>/' } });
    symlinkSync('sub <b>', join(s.dir, 'log', 'within'));
    writeFileSync(join(s.dir, 'log', 'sub <b>', 'deep.log'), 'deep');
    expect((await s.ask('/logs/within/deep.log')).body).toBe('deep');
    // Folders outside are not listed, and whether there is something outside is not told.
    const outside = ['escape', 'up', 'up/tls.key', 'up/none', 'up/pods', 'up/pods/', 'up/log/sys.log', 'up/none/x'];
    symlinkSync(join(s.dir, 'none'), join(s.dir, 'log', 'nowhere'));
    symlinkSync('../pods/../log/sys.log', join(s.dir, 'log', 'around'));
    for (const path of [...outside, 'nowhere', 'around']) expect([path, (await s.ask(`/logs/${path}`)).status]).toEqual([path, 403]);
    for (const path of ['../tls.key', '..%2ftls.key', '%2e%2e/tls.key', 'sub/../../tls.key', 'a%00b']) {
      expect([path, (await s.ask(`/logs/${path}`)).status]).toEqual([path, 400]);
    }
    expect((await s.ask('/logs/none')).status).toBe(404);
    expect((await s.ask(`/logs/${'x'.repeat(300)}`)).status).toBe(400);
  });
});
