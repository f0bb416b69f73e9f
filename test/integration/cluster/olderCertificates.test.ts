/** Certificates with what is older than the node: a control plane of certificates v1beta1 only, pairs of the older layout. */
import { describe, expect, it } from 'vitest';
import type { KubeApi } from '../../../src/ports/kube.ts';
import type { VirtualNode } from '../virtualNode.ts';
import {
  approve,
  asked,
  bootstrapping,
  CERT_DIR,
  CLIENT,
  CLIENT_PEM,
  certificate,
  DAY_MS,
  HOUR_MS,
  KUBECONFIG,
  logged,
  only,
  requests,
  text,
  virtualCertificates,
  WALL_START_MS,
} from './virtualCertificates.ts';

const client = { bootstrap: true, kubeconfig: KUBECONFIG };

/** The same API server, with the requests of certificates under the older version of their group only. */
function older(kube: KubeApi, seen: string[]): KubeApi {
  const at = (path: string): string | null => {
    if (!path.includes('/certificates.k8s.io/')) return path;
    seen.push(path.includes('/v1beta1/') ? 'v1beta1' : 'v1');
    return path.includes('/v1beta1/') ? path.replace('/v1beta1/', '/v1/') : null;
  };
  const failure = { code: 404, reason: 'NotFound', message: '404 page not found', outcome: 'failed' as const };
  return {
    ...kube,
    request: async (request, o) => {
      const path = at(request.path);
      return path === null ? { ok: false, failure } : kube.request({ ...request, path }, o);
    },
    watch: async (request, o) => {
      const path = at(request.path);
      return path === null ? { ok: false, failure } : kube.watch({ ...request, path }, o);
    },
  };
}

describe('a control plane that knows certificates v1beta1 only', () => {
  it('is asked in that version, from the request to the answer', async () => {
    const seen: string[] = [];
    const certificates: typeof virtualCertificates = (o) => (connect) => virtualCertificates(o)(() => older(connect(), seen));
    await using h = await bootstrapping({ certificates: certificates({ client }) });
    await asked(h);
    await h.until('it waits', () => h.state(CLIENT) === 'asking.waiting.watching');
    approve(h, only(h));
    await h.until('it rests', () => h.state(CLIENT) === 'resting');
    expect(await text(h, CLIENT_PEM)).toContain('KEY key-1\n');
    expect(seen.slice(0, 2)).toEqual(['v1', 'v1beta1']);
    expect(new Set(seen.slice(1))).toEqual(new Set(['v1beta1']));
  });
});

describe('a pair of the older layout', () => {
  const put = (h: VirtualNode, o: { notAfterMs: number; key?: string }): void => {
    h.fs.makeDir(CERT_DIR);
    h.fs.put(`${CERT_DIR}/kubelet-client.crt`, certificate({ key: 'old', notBeforeMs: WALL_START_MS - HOUR_MS, notAfterMs: o.notAfterMs }));
    h.fs.put(`${CERT_DIR}/kubelet-client.key`, o.key ?? 'KEY old\n');
  };

  it('is taken over as it is, and its files stay', async () => {
    await using h = await bootstrapping({ before: (v) => put(v, { notAfterMs: WALL_START_MS + DAY_MS }) });
    await h.until('it rests', () => h.state(CLIENT) === 'resting');
    expect(await text(h, CLIENT_PEM)).toMatch(/^CERT .*\nKEY old\n$/);
    expect((await h.fs.stat(CLIENT_PEM)).mode).toBe(0o600);
    expect(h.fs.has(`${CERT_DIR}/kubelet-client.crt`)).toBe(true);
    expect(requests(h)).toEqual([]);
    await h.until('the kubeconfig is written', () => h.fs.has(KUBECONFIG.path));
  });

  it.each([
    ['has ended', (v: VirtualNode) => put(v, { notAfterMs: WALL_START_MS - 1 })],
    ['does not fit', (v: VirtualNode) => put(v, { notAfterMs: WALL_START_MS + DAY_MS, key: 'KEY other\n' })],
    [
      'is not whole',
      (v: VirtualNode) => {
        put(v, { notAfterMs: WALL_START_MS + DAY_MS });
        v.fs.drop(`${CERT_DIR}/kubelet-client.key`);
      },
    ],
  ])('that %s is none: another is asked for', async (what, before) => {
    await using h = await bootstrapping({ before });
    await asked(h);
    expect(h.fs.has(CLIENT_PEM)).toBe(false);
    expect(logged(h, /kubelet-client\.crt cannot be used/).length).toBe(what === 'does not fit' ? 1 : 0);
  });
});
