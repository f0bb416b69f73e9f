/** An observer that is asked over TCP: real sockets, and `actorctl` with a token. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { runCtl } from '@actorlet/ctl/src/cli.ts';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type ObserverApi, serveApi } from '../src/api/api.ts';
import { observeArguments } from '../src/found/step.ts';
import { stillMs } from '../src/priority.ts';

const TOKEN = 'a-token-of-thirty-two-characters';
const folder = mkdtempSync(join(tmpdir(), 'actorlet-observer-api-'));
const socketPath = join(folder, 'actorlet.sock');
const asked: string[] = [];
const admin = createServer((req, res) => {
  asked.push(`${req.method} ${req.url} ${req.headers.authorization ?? 'no token'}`);
  res.writeHead(200, { 'content-type': 'application/json' });
  res.end(JSON.stringify({ disagreements: [], expected: [], counts: [], sinceMs: 0, dropped: 0 }));
});
let api: ObserverApi;

beforeAll(async () => {
  await new Promise<void>((resolve) => admin.listen(socketPath, resolve));
  api = await serveApi({ host: '127.0.0.1', port: 0, token: TOKEN, socketPath });
});
afterAll(() => {
  api[Symbol.dispose]();
  admin.closeAllConnections();
  admin.close();
  rmSync(folder, { recursive: true, force: true });
});

function ask(path: string, o: { method?: string; authorization?: string } = {}): Promise<{ status: number; body: string }> {
  const { method = 'GET', authorization } = o;
  return new Promise((resolve, reject) => {
    const headers = authorization === undefined ? {} : { authorization };
    const req = request({ host: '127.0.0.1', port: api.port, path, method, headers, agent: false }, (res) => {
      let body = '';
      res.on('data', (d) => {
        body += String(d);
      });
      res.on('end', () => resolve({ status: res.statusCode ?? 0, body }));
    });
    req.on('error', reject);
    req.end();
  });
}

describe('over TCP', () => {
  test('nothing is said without the token, whatever is asked', async () => {
    asked.length = 0;
    for (const authorization of [undefined, '', 'Bearer', `Bearer ${TOKEN}x`, `Bearer ${TOKEN.slice(1)}`, `Basic ${TOKEN}`, TOKEN])
      for (const [path, method] of [
        ['/pods', 'GET'],
        ['/nothing', 'GET'],
        ['/restart', 'POST'],
      ] as const) {
        const { status, body } = await ask(path, { method, ...(authorization === undefined ? {} : { authorization }) });
        expect({ status, body }).toEqual({ status: 401, body: '401: the token is missing, or is not the one of this observer\n' });
      }
    expect(asked).toEqual([]);
  });

  test('with it questions are answered, and nothing is done', async () => {
    asked.length = 0;
    const authorization = `Bearer ${TOKEN}`;
    expect((await ask('/why?pod=a%2Fb', { authorization })).status).toBe(200);
    for (const method of ['POST', 'PUT', 'DELETE']) expect((await ask('/pods', { method, authorization })).status).toBe(405);
    for (const path of [
      '/exec',
      '/debugger',
      '/inject',
      '/inject/1',
      '/record',
      '/restart',
      '/logs?pod=a',
      '/pods/../restart',
      '//pods',
      '/',
    ])
      expect((await ask(path, { authorization })).status).toBe(404);
    // The token goes no further.
    expect(asked).toEqual(['GET /why?pod=a%2Fb no token']);
  });

  test('an observer that is ending answers 503, not nothing', async () => {
    using ended = await serveApi({ host: '127.0.0.1', port: 0, token: TOKEN, socketPath: join(folder, 'gone.sock') });
    const answer = await fetch(`http://127.0.0.1:${ended.port}/pods`, { headers: { authorization: `Bearer ${TOKEN}` } });
    expect([answer.status, await answer.text()]).toEqual([503, expect.stringContaining('the observer does not answer')]);
  });
});

describe('actorctl', () => {
  const file = join(folder, 'token');
  const ctl = async (...argv: string[]) => {
    let [out, err] = ['', ''];
    const code = await runCtl({
      ...{ argv, env: {}, columns: 0, exists: () => false, nowMs: () => Date.now() },
      ...{ stdin: Readable.from([]), outBytes: () => undefined, errBytes: () => undefined, signal: new AbortController().signal },
      out: (text) => {
        out += text;
      },
      err: (text) => {
        err += text;
      },
    });
    return { code, out, err };
  };
  const server = () => `--server=http://127.0.0.1:${api.port}`;

  test('asks with the token of a file, and says what is wrong with another', async () => {
    writeFileSync(file, `${TOKEN}\n`);
    expect(await ctl('disagreements', server(), `--token-file=${file}`)).toMatchObject({ code: 0, err: '' });
    expect((await ctl('token', '--socket', socketPath)).out).toBe(`${TOKEN}\n`);
    writeFileSync(file, 'another-token');
    expect(await ctl('disagreements', server(), `--token-file=${file}`)).toMatchObject({
      code: 4,
      err: expect.stringContaining('the token is missing, or is not the one of this observer'),
    });
    writeFileSync(file, 'two words\r\nx: y');
    expect(await ctl('disagreements', server(), `--token-file=${file}`)).toMatchObject({
      code: 2,
      err: expect.stringContaining('one word'),
    });
    expect(await ctl('disagreements', server())).toMatchObject({ code: 2, err: expect.stringContaining('--token-file FILE') });
  });

  test('sends a token to no other machine', async () => {
    writeFileSync(file, TOKEN);
    for (const at of [
      'http://node-1:10261',
      'http://10.0.0.1:10261',
      'https://127.0.0.1:1',
      'http://127.0.0.1.example.com',
      'ftp://localhost',
      'x',
    ])
      expect(await ctl('pods', `--server=${at}`, `--token-file=${file}`)).toMatchObject({ code: 2, out: '' });
  });

  test('says that nobody answers', async () => {
    writeFileSync(file, TOKEN);
    const free = await serveApi({ host: '127.0.0.1', port: 0, token: TOKEN, socketPath });
    free[Symbol.dispose]();
    const { code, err } = await ctl('pods', `--server=http://127.0.0.1:${free.port}`, `--token-file=${file}`);
    expect([code, err]).toEqual([3, expect.stringContaining('Is its port forwarded')]);
  });
});

test('--listen takes a port of the loopback and nothing else, --nice a number', () => {
  const read = (...words: string[]) => observeArguments(['observe', ...words], { cwd: '/' });
  expect(read()).toMatchObject({ listen: null, tokenFile: '', nice: 19 });
  expect(read('--listen', '--nice=0').listen).toEqual({ host: '127.0.0.1', port: 10261 });
  expect(read('--listen=[::1]:9', '--token-file', 'x')).toMatchObject({ listen: { host: '::1', port: 9 }, tokenFile: '/x' });
  for (const at of ['0.0.0.0:1', '[::]:1', ':1', 'localhost:1', '127.0.0.1', '127.0.0.1:70000', '10.0.0.1:1', ''])
    expect(() => read(`--listen=${at}`), at).toThrow(/--listen: .* is no port of the loopback/);
  for (const nice of ['-1', '20', 'x', '']) expect(() => read(`--nice=${nice}`), nice).toThrow(/--nice: .* is no number from 0 to 19/);
});

test('it stands still for what it took while others wait for a core, never because of itself, and not for long', () => {
  const after = (ms: number, cpuMs: number, running: number, o: { cores?: number; savedMs?: number } = {}) =>
    stillMs(
      { monoMs: 1_000, cpuMs: 500, running: 0 },
      { monoMs: 1_000 + ms, cpuMs: 500 + cpuMs, running },
      { cores: 2, savedMs: 9_999, ...o },
    );
  expect([after(25, 25, 20), after(250, 5, 20), after(250, 20, 3)]).toEqual([475, 0, 150]);
  expect([after(25, 25, 2), after(25, 25, 1, { cores: 1 }), after(400, 400, 20), after(400, 400, 20, { savedMs: 70 })]).toEqual([
    0, 0, 1_000, 70,
  ]);
});
