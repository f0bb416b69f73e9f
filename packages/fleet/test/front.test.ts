/** One port for all nodes: which node a request is for; and what commands in containers answer. */

import type { HttpRequest, Net } from '@actorlet/kubelet/ports/sockets/net.ts';
import { describe, expect, it } from 'vitest';
import { answerOrHint, answerTo } from '../src/answers.ts';
import { Front } from '../src/front/front.ts';

const nowhere = () => Promise.reject(new Error('no network here'));
const net: Net = { httpGet: nowhere, serveHttp: nowhere };
const request = (path: string, headers: Record<string, string> = {}): HttpRequest => ({
  ...{ method: 'GET', path, headers, query: new URLSearchParams(), body: new Uint8Array() },
  signal: new AbortController().signal,
});

async function front() {
  const it = new Front({
    address: 'https://h:1',
    nodeOfPod: (ns, pod) => (ns === 'default' && pod === 'web' ? 'b' : undefined),
    state: () => expect.fail('the port shows no tree'),
  });
  for (const name of ['a', 'b']) {
    await it.of(name, net).serveHttp({ host: '', port: 1 }, async (req) => ({ status: 200, body: `${name} ${req.path}` }));
  }
  return it;
}

describe('the port of a fleet', () => {
  it.each([
    ['/nodes/a/stats/summary', {}, 'a /stats/summary'],
    ['/stats/summary', { 'x-forwarded-uri': '/api/v1/nodes/b/proxy/stats/summary' }, 'b /stats/summary'],
    ['/pods', { 'x-forwarded-uri': '/api/v1/nodes/https:a:20250/proxy/pods' }, 'a /pods'],
    ['/containerLogs/default/web/main', {}, 'b /containerLogs/default/web/main'],
    ['/exec/default/web/main', {}, 'b /exec/default/web/main'],
    ['/exec/default/gone/main', {}, 'no node of this fleet has the pod default/gone\n'],
    ['/nodes/c/pods', {}, 'the node c is not of this fleet, or its daemon does not run\n'],
    ['/pods', { 'x-forwarded-uri': '/api/v1/nodes/../proxy/' }, 'the node .. is not of this fleet, or its daemon does not run\n'],
    ['/metrics', {}, 'this port serves a fleet of nodes: name one in the path, /nodes/NAME/pods\n'],
  ])('gives %s %j to its node', async (path, headers, body) => {
    expect((await (await front()).handle(request(path, headers))).body).toBe(body);
  });

  it('forgets a node whose daemon has ended, and not the one that came after it', async () => {
    const it = await front();
    const serve = (text: string) => it.of('a', net).serveHttp({ host: '', port: 1 }, async () => ({ status: 200, body: text }));
    const first = await serve('first');
    const second = await serve('second');
    await first.close();
    expect((await it.handle(request('/nodes/a/pods'))).body).toBe('second');
    await second.close();
    expect((await it.handle(request('/nodes/a/pods'))).status).toBe(404);
  });
});

describe('a command in a hollow container', () => {
  const script = (text: string) => ({ annotations: { 'actorlet.dev/exec': text } });
  it.each([
    ['{"date":"now\\n"}', ['date'], { stdout: 'now\n', stderr: '', exitCode: 0 }],
    ['{"cat a":{"stderr":"no","exit":1}}', ['cat', 'a'], { stdout: '', stderr: 'no', exitCode: 1 }],
    ['{"*":"any"}', ['ls'], { stdout: 'any', stderr: '', exitCode: 0 }],
    ['{"a":"b"}', ['toString'], expect.objectContaining({ exitCode: 127, stderr: expect.stringContaining('no answer to "toString"') })],
    ['[', ['ls'], expect.objectContaining({ exitCode: 126 })],
  ])('answers as %s says', (text, cmd, answer) => {
    expect(answerTo(script(text), cmd)).toEqual(answer);
  });

  it('tells a person how to script it', () => {
    expect(answerTo({ annotations: {} }, ['ls'])).toBeUndefined();
    expect(answerOrHint({ annotations: {} }, ['ls']).stderr).toContain('annotation actorlet.dev/exec');
  });
});
