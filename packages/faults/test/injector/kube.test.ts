/**
 * The interceptor in front of the API server: a fault hits the requests and watches it names, and what was injected
 * ends when it is healed.
 */

import type { KubeRequest, KubeResult } from '@actorlet/kubelet/machines/kube/request.ts';
import type { KubeApi } from '@actorlet/kubelet/ports/kube.ts';
import { describe, expect, it } from 'vitest';
import { apiSubject } from '../../src/subjects.ts';
import { injectorRig, watched } from './rig.ts';

const OPTS = { timeoutMs: 10_000, signal: new AbortController().signal };
const PATCH: KubeRequest = { verb: 'PATCH', path: '/api/v1/namespaces/default/pods/web/status', patchType: 'strategic', body: {} };

async function bed() {
  const reached: string[] = [];
  const feed: { push: (line: string) => void } = { push: () => undefined };
  const kube: Partial<KubeApi> = {
    server: 'https://api',
    request: async (request) => {
      reached.push(`${request.verb} ${request.path}`);
      return { ok: true, code: 200, body: {} };
    },
    watch: async () => {
      const waiting: string[] = [];
      let wake: () => void = () => undefined;
      feed.push = (line) => {
        waiting.push(line);
        wake();
      };
      async function* lines(): AsyncGenerator<string> {
        for (;;) {
          const line = waiting.shift();
          if (line !== undefined) yield line;
          else
            await new Promise<void>((resolve) => {
              wake = resolve;
            });
        }
      }
      return { ok: true, lines: lines() };
    },
  };
  const r = await injectorRig({ kube });
  const { kube: api } = r.ports;
  if (api === undefined) throw new Error('no API server in this test');
  const request = (req: KubeRequest = PATCH) => watched(api.request(req, OPTS));
  return { r, api, reached, feed, request };
}
const failure = (seen: { value?: KubeResult }) =>
  seen.value === undefined
    ? 'open'
    : seen.value.ok
      ? 'ok'
      : `${seen.value.failure.code} ${seen.value.failure.reason} ${seen.value.failure.outcome}`;

describe('requests to the API server', () => {
  it('are told apart by verb, resource, namespace and pod', () => {
    const of = (verb: KubeRequest['verb'] | 'watch', path: string, body?: unknown) => apiSubject({ verb, path, body });
    expect(of('PATCH', PATCH.path)).toEqual({ verb: 'patch', resource: 'pods/status', namespace: 'default', pod: 'web' });
    expect(of('GET', '/api/v1/nodes/n1')).toEqual({ verb: 'get', resource: 'nodes' });
    expect(of('GET', '/api/v1/pods')).toEqual({ verb: 'list', resource: 'pods' });
    expect(of('GET', '/api/v1/namespaces/default')).toEqual({ verb: 'get', resource: 'namespaces' });
    expect(of('watch', '/api/v1/pods')).toEqual({ verb: 'watch', resource: 'pods' });
    expect(of('PUT', '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/n1')).toEqual({
      verb: 'update',
      resource: 'leases',
      namespace: 'kube-node-lease',
    });
    expect(of('POST', '/api/v1/namespaces/default/pods', { metadata: { name: 'new' } })).toEqual({
      verb: 'create',
      resource: 'pods',
      namespace: 'default',
      pod: 'new',
    });
    expect(of('GET', '/version')).toEqual({ verb: 'list', resource: '' });
  });

  it('are refused, lost and late as asked, and pass otherwise', async () => {
    const b = await bed();
    await b.r.begin([
      { kind: 'api.call', action: 'error', status: 409, select: { verbs: ['patch'], resources: ['pods/*'], pods: ['web'] } },
    ]);
    const [mine, other] = [b.request(), b.request({ verb: 'GET', path: '/api/v1/nodes/n1' })];
    await b.r.base.settle();
    expect([failure(mine), failure(other), b.reached]).toEqual(['409 Conflict failed', 'ok', ['GET /api/v1/nodes/n1']]);
    await b.r.stop();
    await b.r.begin([{ kind: 'api.call', action: 'lost-with-effect' }]);
    const lost = b.request();
    await b.r.base.advance(9_999);
    expect([failure(lost), b.reached.length]).toEqual(['open', 2]);
    await b.r.base.advance(1);
    expect(failure(lost)).toBe('0 Timeout unknown');
    await b.r.stop();
    await b.r.begin([{ kind: 'api.call', action: 'late-effect', delay: '20s' }]);
    b.request();
    await b.r.base.advance(19_000);
    expect(b.reached).toHaveLength(2);
    await b.r.base.advance(1_000);
    expect(b.reached).toHaveLength(3);
    await b.r.stop();
    await b.r.begin([{ kind: 'api.call', action: 'delay', delay: '3s' }]);
    const late = b.request();
    await b.r.base.advance(3_000);
    expect([failure(late), b.reached.length]).toEqual(['ok', 4]);
  });

  it('get no answer while the network is cut; healed, they end', async () => {
    const b = await bed();
    await b.r.begin([{ kind: 'api.partition' }]);
    const read = b.request({ verb: 'GET', path: '/api/v1/nodes/n1' });
    await b.r.base.advance(5_000);
    expect([failure(read), b.reached]).toEqual(['open', []]);
    await b.r.stop();
    await b.r.base.settle();
    expect(failure(read)).toBe('0 Timeout failed');
    const after = b.request();
    await b.r.base.settle();
    expect(failure(after)).toBe('ok');
  });
});

describe('a watch', () => {
  async function reading() {
    const b = await bed();
    const got: string[] = [];
    const end = { how: 'open' };
    const opened = await b.api.watch({ path: '/api/v1/pods' }, OPTS);
    if (!opened.ok) throw new Error('refused');
    const { lines } = opened;
    const read = async () => {
      try {
        for await (const line of lines) got.push(line);
        end.how = 'closed';
      } catch (error) {
        end.how = String(error);
      }
    };
    void read();
    const push = async (line: string) => {
      b.feed.push(line);
      await b.r.base.settle();
    };
    return { ...b, got, end, push };
  }

  it('says nothing while it is silent or cut off, and loses nothing by it', async () => {
    const b = await reading();
    await b.push('1');
    for (const fault of [{ kind: 'api.watch', action: 'silence', select: { resources: ['pods'] } }, { kind: 'api.partition' }]) {
      const before = b.got.length;
      await b.r.begin([fault]);
      await b.push(`${before}a`);
      await b.push(`${before}b`);
      expect(b.got).toHaveLength(before);
      await b.r.stop();
      await b.r.base.settle();
      expect(b.got.slice(before)).toEqual([`${before}a`, `${before}b`]);
    }
  });

  it('is closed, or ends inside a line', async () => {
    const b = await reading();
    await b.r.begin([{ kind: 'api.watch', action: 'close' }]);
    await b.push('1');
    expect([b.got, b.end.how]).toEqual([[], 'closed']);
    const c = await reading();
    await c.r.begin([{ kind: 'api.watch', action: 'truncate' }]);
    await c.push('1');
    expect([c.got, c.end.how]).toEqual([[], 'Error: the watch ended inside a line (injected fault)']);
  });

  it('has expired in place of its next line', async () => {
    const b = await reading();
    await b.r.begin([{ kind: 'api.watch', action: 'expire' }]);
    await b.push('1');
    expect(b.got.map((line) => JSON.parse(line))).toMatchObject([{ type: 'ERROR', object: { code: 410, reason: 'Expired' } }]);
    expect(b.end.how).toBe('closed');
  });

  it('brings lines twice', async () => {
    const b = await reading();
    await b.r.begin([{ kind: 'api.watch', action: 'duplicate' }]);
    await b.push('1');
    expect(b.got).toEqual(['1', '1']);
  });
});
