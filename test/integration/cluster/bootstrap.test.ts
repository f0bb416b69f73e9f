/** A node that gets its first certificate from the cluster, in virtual time, against the simulated API server. */
import { describe, expect } from 'vitest';
import { itWith } from '../onNode.ts';
import { pod } from '../virtualNode.ts';
import {
  approve,
  asked,
  bootstrapping,
  CLIENT,
  CLIENT_PEM,
  CSRS,
  deny,
  KUBECONFIG,
  logged,
  metric,
  only,
  pending,
  requestOf,
  requests,
  text,
} from './virtualCertificates.ts';

const it = itWith(bootstrapping);

describe('a node without a certificate', () => {
  it('asks with the bootstrap credentials, waits for approval, keeps the pair and writes the kubeconfig, and runs pods meanwhile', async () => {
    await using h = await bootstrapping({ manifests: { web: pod('web') } });
    await asked(h);
    const csr = only(h);
    expect(csr.metadata.name).toBe('node-csr-key-1-3');
    expect(csr.spec).toMatchObject({
      signerName: 'kubernetes.io/kube-apiserver-client-kubelet',
      usages: ['digital signature', 'key encipherment', 'client auth'],
    });
    expect(requestOf(csr).template).toEqual({ commonName: 'system:node:n1', organizations: ['system:nodes'], dnsNames: [], ips: [] });
    await h.until('the static pod runs', () => h.running('web').length === 1);
    await h.until('it waits', () => h.state(CLIENT) === 'asking.waiting.watching');
    expect(h.fs.has(KUBECONFIG.path)).toBe(false);
    expect(await metric(h, 'kubelet_certificate_manager_client_ttl_seconds')).toBe(Number.POSITIVE_INFINITY);
    approve(h, csr);
    await h.until('the kubeconfig is written', () => h.fs.has(KUBECONFIG.path));
    await h.until('it rests', () => h.state(CLIENT) === 'resting');
    expect(await text(h, KUBECONFIG.path)).toBe(KUBECONFIG.text);
    expect(await text(h, CLIENT_PEM)).toMatch(/^CERT .*\nKEY key-1\n$/);
    expect((await h.fs.lstat(CLIENT_PEM)).kind).toBe('symlink');
    for (const file of [CLIENT_PEM, KUBECONFIG.path]) expect((await h.fs.stat(file)).mode).toBe(0o600);
    expect(h.fs.below('/var/lib/kubelet/pki').filter((p) => /tmp$|new$|updated/.test(p))).toEqual([]);
    const left = await metric(h, 'kubelet_certificate_manager_client_ttl_seconds');
    expect(left).toBeGreaterThan(80_000);
    expect(left).toBeLessThanOrEqual(86_400);
  });

  it('shows no key in log, state or view', async ({ h }) => {
    await asked(h);
    approve(h, only(h));
    await h.until('it rests', () => h.state(CLIENT) === 'resting');
    expect(JSON.stringify([h.lines, h.tree.state(), h.tree.actorAt(CLIENT)?.getSnapshot()])).not.toMatch(/KEY key/);
  });

  it('waits for the same request after a crash, with the key it had', async ({ h }) => {
    await asked(h);
    await h.until('it waits', () => h.state(CLIENT) === 'asking.waiting.watching');
    const first = only(h);
    await h.restart();
    await h.until('it waits again', () => h.state(CLIENT) === 'asking.waiting.watching');
    expect(pending(h).map((c) => c.metadata.uid)).toEqual([first.metadata.uid]);
    approve(h, first);
    await h.until('it rests', () => h.state(CLIENT) === 'resting');
    expect(await text(h, CLIENT_PEM)).toContain('KEY key-1\n');
  });

  it('finds a certificate that was signed while it was down', async ({ h }) => {
    await asked(h);
    await h.crash();
    approve(h, only(h));
    await h.boot();
    await h.until('it rests', () => h.state(CLIENT) === 'resting');
    expect(requests(h)).toHaveLength(1);
  });

  it('writes the kubeconfig when a crash came between certificate and kubeconfig', async ({ h }) => {
    await asked(h);
    h.fs.failing = (op, path) => (op === 'writeFile' && path.startsWith(KUBECONFIG.path) ? 'EIO' : undefined);
    approve(h, only(h));
    await h.until('the certificate is there', () => h.fs.has(CLIENT_PEM));
    await h.crash();
    h.fs.failing = () => undefined;
    await h.boot();
    await h.until('the kubeconfig is there', () => h.fs.has(KUBECONFIG.path));
    await h.until('it rests', () => h.state(CLIENT) === 'resting');
    expect(requests(h)).toHaveLength(1);
  });

  it.each(['Denied', 'Failed'] as const)('says that it was %s and asks again later with another key, ever more slowly', async (type) => {
    await using h = await bootstrapping();
    await asked(h);
    deny(h, only(h), type);
    await h.until('it backs off', () => h.state(CLIENT) === 'backingOff');
    const what = type === 'Denied' ? /was denied \(Nobody: knows this node\)/ : /failed to be signed \(Nobody: knows this node\)/;
    expect(h.actor(CLIENT)).toMatchObject({ reason: 'CertificateMissing' });
    expect(h.actor(CLIENT)?.message).toMatch(what);
    expect(logged(h, what).map((l) => l.level)).toEqual(['warn']);
    const from = h.time.clock.monoMs();
    await asked(h);
    expect(h.time.clock.monoMs() - from).toBeGreaterThanOrEqual(60_000);
    expect(requestOf(only(h)).key).toBe('key-2');
    deny(h, only(h), type);
    await h.until('it backs off', () => h.state(CLIENT) === 'backingOff');
    const again = h.time.clock.monoMs();
    await asked(h);
    expect(h.time.clock.monoMs() - again).toBeGreaterThanOrEqual(120_000);
    expect(await metric(h, 'kubelet_certificate_manager_client_expiration_renew_errors')).toBe(2);
    approve(h, only(h));
    await h.until('it rests', () => h.state(CLIENT) === 'resting');
  });

  it('asks again for a request that was removed, under the same name', async ({ h }) => {
    await asked(h);
    await h.until('it waits', () => h.state(CLIENT) === 'asking.waiting.watching');
    const first = only(h);
    h.kube.handle({ verb: 'DELETE', path: `${CSRS}/${first.metadata.name}` });
    await h.until('it is there again', () => pending(h).some((c) => c.metadata.uid !== first.metadata.uid));
    expect(only(h).metadata.name).toBe(first.metadata.name);
  });

  it('does not take a namesake that asks for something else', async () => {
    await using h = await bootstrapping({
      before: (h) => {
        const body = {
          metadata: { name: 'node-csr-key-1-3' },
          spec: { request: btoa('another'), signerName: 'example.com/x', usages: [] },
        };
        h.kube.handle({ verb: 'POST', path: CSRS, body });
      },
    });
    await h.until('it backs off', () => h.state(CLIENT) === 'backingOff');
    expect(h.actor(CLIENT)?.message).toContain('is there already and asks for something else');
  });

  it('names the bootstrap credentials when they are not accepted, and goes on trying', async () => {
    await using h = await bootstrapping({
      before: (h) => {
        h.kube.trouble.verdict = (r) => ({
          delayMs: 0,
          ...(r.path.startsWith(CSRS) ? { refuse: { status: 401, reason: 'Unauthorized' } } : {}),
        });
      },
    });
    await h.until('it backs off', () => h.state(CLIENT) === 'backingOff');
    expect(h.actor(CLIENT)?.message).toMatch(/401 Unauthorized.*--bootstrap-kubeconfig are not accepted, its token may have expired/);
    await h.advance(120_000);
    // 2, 4, 8, 16 and then every 32 s, lengthened by up to a tenth.
    const tries = h.kube.calls.filter((c) => c.request.verb === 'POST' && c.request.path === CSRS).length;
    expect(tries).toBeGreaterThanOrEqual(6);
    expect(tries).toBeLessThanOrEqual(8);
    expect(logged(h, /are not accepted/)).toHaveLength(1);
    h.kube.trouble.verdict = () => ({ delayMs: 0 });
    await asked(h);
  });

  it('gets through lost answers, cut watches and expired history', async ({ h }) => {
    await asked(h);
    await h.until('it waits', () => h.state(CLIENT) === 'asking.waiting.watching');
    await h.advance(1_000);
    h.kube.store.compact();
    h.kube.cutWatches('truncate');
    await h.until('it paused', () => h.state(CLIENT) === 'asking.waiting.pausing');
    await h.until('it waits again', () => h.state(CLIENT) === 'asking.waiting.watching');
    h.kube.trouble.down = true;
    h.kube.cutWatches('close');
    await h.advance(300_000);
    h.kube.trouble.down = false;
    const csr = only(h);
    approve(h, csr);
    await h.until('it rests', () => h.state(CLIENT) === 'resting');
    expect(requests(h)).toHaveLength(1);
  });

  it('refuses a certificate that is not for its key', async ({ h }) => {
    await asked(h);
    approve(h, only(h), { change: { key: 'stolen' } as object });
    await h.until('it backs off', () => h.state(CLIENT) === 'backingOff');
    expect(h.actor(CLIENT)?.message).toContain('certificate and private key do not belong together');
    expect(h.fs.has(CLIENT_PEM)).toBe(false);
    await asked(h);
    expect(requestOf(only(h)).key).toBe('key-2');
  });
});
