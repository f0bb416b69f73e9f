/** A node that renews what it got from the cluster, in virtual time, against the simulated API server. */
import { describe, expect, it } from 'vitest';
import { virtualNode } from '../virtualNode.ts';
import {
  approve,
  asked,
  bootstrapping,
  CLIENT,
  CLIENT_PEM,
  DAY_MS,
  HOUR_MS,
  logged,
  metric,
  only,
  pending,
  putHalf,
  putPair,
  requestOf,
  requests,
  rotating,
  SERVER_PEM,
  SERVING,
  serving,
  text,
  usagesOf,
  virtualCertificates,
  WALL_START_MS,
} from './virtualCertificates.ts';

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

  it('is found although the stream that should have told of it is dead', async () => {
    await using h = await bootstrapping();
    await asked(h);
    await h.until('it waits', () => h.state(CLIENT) === 'asking.waiting.watching');
    await h.advance(5_000);
    h.kube.silenceWatches();
    approve(h, only(h));
    await h.advance(30_000);
    expect(h.state(CLIENT)).toBe('asking.waiting.watching');
    await h.until('it rests', () => h.state(CLIENT) === 'resting', 100_000);
    expect(requests(h)).toHaveLength(1);
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

  it('that ended while the clock was wrong is renewed within a minute of its being set right', async () => {
    // The clock is behind by an hour as the daemon starts, as on a machine without one of its own.
    const life = { notBeforeMs: WALL_START_MS, notAfterMs: WALL_START_MS + HOUR_MS };
    await using h = await rotating(life, { before: (h) => h.time.jumpWall(-HOUR_MS) });
    await h.until('it rests', () => h.state(CLIENT) === 'resting');
    await h.advance(30_000);
    h.time.jumpWall(2 * HOUR_MS);
    await h.until('it asks', () => pending(h).length === 1, 61_000);
    approve(h, only(h));
    await h.until('it rests', () => h.state(CLIENT) === 'resting');
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
