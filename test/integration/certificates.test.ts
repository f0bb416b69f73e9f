/** A node that gets its certificates from the cluster, in virtual time, against the simulated API server. */
import { describe, expect, it } from 'vitest';
import {
  approve,
  CLIENT_PEM,
  CSRS,
  DAY_MS,
  deny,
  HOUR_MS,
  isPending,
  putPair,
  requestOf,
  requests,
  SERVER_PEM,
  usagesOf,
  virtualCertificates,
} from './virtualCertificates.ts';
import { pod, type VirtualNode, type VirtualNodeOptions, virtualNode } from './virtualNode.ts';

const CLIENT = 'node/api/clientCertificate';
const SERVING = 'node/api/servingCertificate';
const KUBECONFIG = { path: '/etc/kubelet.conf', text: 'written by the node\n' };
const WALL_START_MS = Date.UTC(2026, 0, 1);

const bootstrapping = (o: VirtualNodeOptions = {}): Promise<VirtualNode> =>
  virtualNode({
    cluster: true,
    certificates: virtualCertificates({ client: { bootstrap: true, kubeconfig: KUBECONFIG } }),
    ...o,
    flags: { bootstrapKubeconfig: '/bootstrap.conf', ...o.flags },
  });
/** A node whose first certificate is there; `before` sees it, too. */
const rotating = (life: { notBeforeMs: number; notAfterMs: number }, o: VirtualNodeOptions = {}): Promise<VirtualNode> =>
  virtualNode({
    cluster: true,
    certificates: virtualCertificates({ client: {} }),
    ...o,
    config: { rotateCertificates: true, ...o.config },
    before: (h) => {
      void putPair(h, CLIENT_PEM, life);
      o.before?.(h);
    },
  });
const serving = (o: VirtualNodeOptions = {}): Promise<VirtualNode> =>
  virtualNode({
    cluster: true,
    servers: true,
    certificates: virtualCertificates(),
    ...o,
    config: { serverTLSBootstrap: true, tlsCertFile: '', tlsPrivateKeyFile: '', ...o.config },
  });
const text = async (h: VirtualNode, path: string): Promise<string> =>
  new TextDecoder().decode(await h.fs.readFile(path, { bytesMax: 100_000 }));
const pending = (h: VirtualNode) => requests(h).filter(isPending);
const only = (h: VirtualNode) => {
  const [csr, ...more] = pending(h);
  if (csr === undefined || more.length > 0) throw new Error(`${pending(h).length} requests are pending`);
  return csr;
};
const asked = (h: VirtualNode, count = 1) => h.until(`${count} requests`, () => pending(h).length === count, 300_000);
function putHalf(h: VirtualNode): void {
  h.fs.makeDir('/var/lib/kubelet/pki');
  h.fs.put(CLIENT_PEM, 'half a fi');
}
const logged = (h: VirtualNode, words: RegExp) => h.lines.filter((l) => words.test(l.msg));
/** The value of a metric without labels. */
async function metric(h: VirtualNode, name: string): Promise<number> {
  const line = (await h.metrics.render()).split('\n').find((l) => l.startsWith(`${name} `));
  return Number(line?.split(' ')[1]);
}

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

  it('shows no key in log, state or view', async () => {
    await using h = await bootstrapping();
    await asked(h);
    approve(h, only(h));
    await h.until('it rests', () => h.state(CLIENT) === 'resting');
    expect(JSON.stringify([h.lines, h.tree.state(), h.tree.actorAt(CLIENT)?.getSnapshot()])).not.toMatch(/KEY key/);
  });

  it('waits for the same request after a crash, with the key it had', async () => {
    await using h = await bootstrapping();
    await asked(h);
    await h.until('it waits', () => h.state(CLIENT) === 'asking.waiting.watching');
    const first = only(h);
    await h.crash();
    await h.boot();
    await h.until('it waits again', () => h.state(CLIENT) === 'asking.waiting.watching');
    expect(pending(h).map((c) => c.metadata.uid)).toEqual([first.metadata.uid]);
    approve(h, first);
    await h.until('it rests', () => h.state(CLIENT) === 'resting');
    expect(await text(h, CLIENT_PEM)).toContain('KEY key-1\n');
  });

  it('finds a certificate that was signed while it was down', async () => {
    await using h = await bootstrapping();
    await asked(h);
    await h.crash();
    approve(h, only(h));
    await h.boot();
    await h.until('it rests', () => h.state(CLIENT) === 'resting');
    expect(requests(h)).toHaveLength(1);
  });

  it('writes the kubeconfig when a crash came between certificate and kubeconfig', async () => {
    await using h = await bootstrapping();
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

  it('asks again for a request that was removed, under the same name', async () => {
    await using h = await bootstrapping();
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

  it('gets through lost answers, cut watches and expired history', async () => {
    await using h = await bootstrapping();
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

  it('refuses a certificate that is not for its key', async () => {
    await using h = await bootstrapping();
    await asked(h);
    approve(h, only(h), { change: { key: 'stolen' } as object });
    await h.until('it backs off', () => h.state(CLIENT) === 'backingOff');
    expect(h.actor(CLIENT)?.message).toContain('certificate and private key do not belong together');
    expect(h.fs.has(CLIENT_PEM)).toBe(false);
    await asked(h);
    expect(requestOf(only(h)).key).toBe('key-2');
  });
});

describe('a client certificate', () => {
  it('is renewed between 70 and 90 % of its life with a new key, and the old one stays until then', async () => {
    const life = { notBeforeMs: WALL_START_MS, notAfterMs: WALL_START_MS + HOUR_MS };
    const shares: number[] = [];
    for (const seed of [1, 2, 3]) {
      await using h = await rotating(life, { seed });
      await h.until('it asks', () => pending(h).length === 1, HOUR_MS);
      shares.push((h.time.clock.wallMs() - WALL_START_MS) / HOUR_MS);
      const csr = only(h);
      expect(csr.metadata.name).toMatch(/^csr-/);
      expect(await text(h, CLIENT_PEM)).toContain('KEY old');
      approve(h, csr);
      await h.until('the new one is there', () => h.state(CLIENT) === 'resting');
      expect(await text(h, CLIENT_PEM)).toContain(`KEY ${requestOf(csr).key}\n`);
      expect(logged(h, /a new certificate is in use/)).toHaveLength(1);
    }
    for (const share of shares) {
      expect(share).toBeGreaterThanOrEqual(0.7);
      expect(share).toBeLessThanOrEqual(0.901);
    }
    expect(new Set(shares).size).toBe(3);
  });

  it('is kept for a while also when the signer dates it so far back that it is due at once', async () => {
    const life = { notBeforeMs: WALL_START_MS - 9 * HOUR_MS, notAfterMs: WALL_START_MS + HOUR_MS };
    await using h = await rotating(life);
    const backdated = () => {
      for (const csr of pending(h)) approve(h, csr, { lifeMs: 120_000, change: { notBeforeMs: h.time.clock.wallMs() - HOUR_MS } });
      return false;
    };
    const from = h.time.clock.monoMs();
    await h.until('ten minutes pass', () => backdated() || h.time.clock.monoMs() - from >= 600_000, 700_000);
    expect(requests(h).length).toBeGreaterThanOrEqual(8);
    expect(requests(h).length).toBeLessThanOrEqual(11);
    expect(await metric(h, 'kubelet_certificate_manager_client_ttl_seconds')).toBeGreaterThan(0);
  });

  it('that has ended when it arrives is no certificate, and is not asked for again at once', async () => {
    await using h = await bootstrapping();
    await asked(h);
    approve(h, only(h), { lifeMs: -1 });
    await h.until('it backs off', () => h.state(CLIENT) === 'backingOff');
    expect(h.actor(CLIENT)).toMatchObject({ reason: 'CertificateMissing' });
    expect(h.actor(CLIENT)?.message).toContain('already: the clock of this node may be wrong');
    await asked(h);
    approve(h, only(h));
    await h.until('it rests', () => h.state(CLIENT) === 'resting');
  });

  it('is left alone without rotateCertificates until it has ended', async () => {
    const life = { notBeforeMs: WALL_START_MS, notAfterMs: WALL_START_MS + HOUR_MS };
    await using h = await bootstrapping({ before: (h) => void putPair(h, CLIENT_PEM, life) });
    await h.advance(0.95 * HOUR_MS);
    expect(requests(h)).toEqual([]);
    await h.until('it asks once it has ended', () => pending(h).length === 1, HOUR_MS);
    expect(h.time.clock.wallMs()).toBeGreaterThanOrEqual(life.notAfterMs);
    expect(await metric(h, 'kubelet_certificate_manager_client_ttl_seconds')).toBeLessThanOrEqual(0);
    approve(h, only(h));
    await h.until('it rests', () => h.state(CLIENT) === 'resting');
  });

  it('is asked for again when nobody answers within 15 minutes, with another key', async () => {
    const life = { notBeforeMs: WALL_START_MS - 9 * HOUR_MS, notAfterMs: WALL_START_MS + HOUR_MS };
    await using h = await rotating(life);
    await asked(h);
    await h.until('another', () => pending(h).length === 2, 20 * 60_000);
    expect(logged(h, /was not answered within 15 min/)).toHaveLength(1);
    expect(new Set(requests(h).map((c) => requestOf(c).key)).size).toBe(2);
  });

  it('that lost its life on disk is as good as none, and is said to be', async () => {
    await using h = await bootstrapping({ before: (h) => putHalf(h) });
    await asked(h);
    expect(logged(h, /kubelet-client-current.pem cannot be used: there is no certificate in it/).map((l) => l.level)).toEqual(['error']);
    approve(h, only(h));
    // A file where the link should be is a person's: it is not overwritten.
    await h.until('it says so', () => /is no symbolic link; move it away/.test(h.actor(CLIENT)?.message ?? ''));
    h.fs.drop(CLIENT_PEM);
    await h.until('it rests', () => h.state(CLIENT) === 'resting', 120_000);
  });

  it('is taken when somebody else puts a newer one there', async () => {
    const life = { notBeforeMs: WALL_START_MS, notAfterMs: WALL_START_MS + HOUR_MS };
    await using h = await rotating(life);
    await h.until('it rests', () => h.state(CLIENT) === 'resting');
    h.fs.drop(CLIENT_PEM);
    h.fs.drop(CLIENT_PEM.replace('-current', '-2025-12-31-00-00-00'));
    await putPair(h, CLIENT_PEM, { notBeforeMs: WALL_START_MS + 1, notAfterMs: WALL_START_MS + 100 * DAY_MS });
    await h.advance(HOUR_MS);
    expect(requests(h)).toEqual([]);
  });

  it('survives a full disk: the signed one is stored as soon as there is room', async () => {
    await using h = await bootstrapping();
    await asked(h);
    await h.until('it waits', () => h.state(CLIENT) === 'asking.waiting.watching');
    h.fs.failing = (op, path) => (op === 'writeFile' && /kubelet-client-\d/.test(path) ? 'ENOSPC' : undefined);
    approve(h, only(h));
    await h.until('it backs off', () => h.state(CLIENT) === 'backingOff');
    expect(h.actor(CLIENT)?.message).toContain('ENOSPC');
    h.fs.failing = () => undefined;
    await h.until('it rests', () => h.state(CLIENT) === 'resting', 120_000);
    expect(requests(h)).toHaveLength(1);
  });

  it('never leaves less than a whole pair, whenever the daemon is killed while it stores one', async () => {
    const ops: string[] = [];
    for (let at = 0; ; at++) {
      await using h = await rotating({ notBeforeMs: WALL_START_MS - 9 * HOUR_MS, notAfterMs: WALL_START_MS + HOUR_MS });
      await asked(h);
      await h.until('it waits', () => h.state(CLIENT) === 'asking.waiting.watching');
      let count = 0;
      h.fs.delayMs = (op, path) => {
        if (!path.includes('kubelet-client')) return 0;
        if (count++ !== at) return 0;
        ops.push(op);
        return 10_000;
      };
      approve(h, only(h));
      await h.until('an operation is held, or all are done', () => count > at || h.state(CLIENT) === 'resting');
      const all = count <= at;
      await h.crash();
      h.fs.delayMs = () => 0;
      await h.time.advance(20_000);
      await h.boot();
      await h.until('it has one', () => /resting|asking/.test(h.state(CLIENT)));
      expect(h.actor(CLIENT)?.message).not.toContain('there is no');
      expect(logged(h, /cannot be used/)).toEqual([]);
      if (all) break;
    }
    expect(ops).toEqual(expect.arrayContaining(['writeFile', 'symlink', 'rename']));
  });
});

describe('a serving certificate', () => {
  it('is asked for when the API server shows addresses, and not before', async () => {
    await using h = await serving({
      before: (h) => {
        h.kube.trouble.verdict = (r) => ({ delayMs: 0, ...(/nodes/.test(r.path) ? { refuse: { status: 500 } } : {}) });
      },
    });
    await h.advance(60_000);
    expect(h.state(SERVING)).toBe('unaddressed');
    expect(requests(h)).toEqual([]);
    h.kube.trouble.verdict = () => ({ delayMs: 0 });
    await asked(h);
    const csr = only(h);
    expect(csr.spec).toMatchObject({ signerName: 'kubernetes.io/kubelet-serving' });
    expect(usagesOf(csr)).toEqual(['digital signature', 'key encipherment', 'server auth']);
    expect(requestOf(csr).template).toEqual({
      commonName: 'system:node:n1',
      organizations: ['system:nodes'],
      dnsNames: ['n1'],
      ips: ['192.0.2.1'],
    });
    approve(h, csr);
    await h.until('it rests', () => h.state(SERVING) === 'resting');
    expect(await text(h, SERVER_PEM)).toMatch(/^CERT .*\nKEY key-1\n$/);
    await h.until('the server uses it at once', () => logged(h, /new connections use them/).length === 1, 5_000);
  });

  it('is asked for anew when the addresses that the API server shows change, also while a request waits', async () => {
    const flags: { nodeIPs: string[] } = { nodeIPs: ['192.0.2.1'] };
    await using h = await serving({ flags });
    await asked(h);
    await h.crash();
    // The API server shows the old address until this daemon has reported the new one.
    flags.nodeIPs = ['192.0.2.9'];
    await h.boot();
    const asksFor = (ip: string) => pending(h).filter((c) => requestOf(c).template.ips.includes(ip));
    await h.until(
      'it asks for the old one, then for the new one',
      () => asksFor('192.0.2.1').length === 2 && asksFor('192.0.2.9').length === 1,
    );
    const [csr] = asksFor('192.0.2.9');
    if (csr === undefined) throw new Error('no request');
    approve(h, csr);
    await h.until('it rests', () => h.state(SERVING) === 'resting');
    await h.crash();
    flags.nodeIPs = ['2001:DB8::0:5'];
    await h.boot();
    await h.until('it asks for the third', () => asksFor('2001:db8::5').length === 1);
    expect(await text(h, SERVER_PEM)).toContain('192.0.2.9');
  });

  it('is renewed without a restart, and its age at that time is counted', async () => {
    await using h = await serving();
    await asked(h);
    approve(h, only(h), { lifeMs: HOUR_MS });
    await h.until('it rests', () => h.state(SERVING) === 'resting');
    await h.until('it asks again', () => pending(h).length === 1, HOUR_MS);
    approve(h, only(h), { lifeMs: HOUR_MS });
    await h.until('it rests', () => h.state(SERVING) === 'resting');
    expect(await metric(h, 'kubelet_certificate_manager_server_rotation_seconds_count')).toBe(1);
    await h.until('the server uses it', () => logged(h, /new connections use them/).length === 2, 20_000);
  });

  it('that says too little is stored, said to be incomplete, and asked for again, ever more slowly', async () => {
    await using h = await serving();
    await asked(h);
    approve(h, only(h), { change: { ips: [] } });
    await h.until('it backs off', () => h.state(SERVING) === 'backingOff');
    expect(h.actor(SERVING)).toMatchObject({ reason: 'RenewalFailed' });
    expect(h.actor(SERVING)?.message).toContain('the signer left out: address 192.0.2.1');
    await asked(h);
    approve(h, only(h));
    await h.until('it rests', () => h.state(SERVING) === 'resting');
    expect(requests(h)).toHaveLength(2);
  });
});

it('leaves credentials alone that it was not asked to keep', async () => {
  await using h = await virtualNode({
    cluster: true,
    certificates: virtualCertificates(),
    flags: { bootstrapKubeconfig: '/bootstrap.conf' },
  });
  await h.advance(HOUR_MS);
  expect(h.state(CLIENT)).toBe('unmanaged');
  expect(requests(h)).toEqual([]);
});
