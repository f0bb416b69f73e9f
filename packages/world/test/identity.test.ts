/** The parts of a world that have to do with certificates and with who may ask a node what: each by itself, then in a run. */

import { clientTemplate, SIGNERS } from '@actorlet/kubelet/machines/api/certificates/template.ts';
import type { KubeObject } from '@actorlet/kubelet/machines/kube/request.ts';
import type { HttpReply, HttpRequest, TlsMaterial } from '@actorlet/kubelet/ports/sockets/net.ts';
import { type Fault, runSim } from '@actorlet/sim/src/index.ts';
import { describe, expect, it, vi } from 'vitest';
import { RUNS_ALL } from '../../../test/rotation.ts';
import { type CallerRequest, CLIENT_CA_TEXT, simNet } from '../src/host/net.ts';
import { NOBODY, OPERATOR, REVIEWS, tokenOf, VIEWER } from '../src/identity/accounts.ts';
import { certificateText, newKey, publicOf, readPair, SECRET, type SimCertificate, simCertificates } from '../src/identity/certificates.ts';
import { Signer } from '../src/identity/signer.ts';
import { simKube } from '../src/kube/kubeApi.ts';
import type { SimKube } from '../src/kube/types.ts';
import { simRng } from '../src/rng.ts';
import { SimTime, WALL_START_MS } from '../src/time.ts';

/** Real time, on a machine that is busy with other tests. */
vi.setConfig({ testTimeout: 240_000 });

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
const text = (data: Uint8Array): string => new TextDecoder().decode(data);
const CSRS = '/apis/certificates.k8s.io/v1/certificatesigningrequests';
const LIFE_MS = 60_000;

function pair(o: { leftMs?: number; seed?: string; issuer?: SimCertificate['issuer'] } = {}) {
  const key = newKey(simRng(o.seed ?? 'key'));
  const notAfterMs = WALL_START_MS + (o.leftMs ?? LIFE_MS);
  const cert = certificateText({
    ...clientTemplate('n1'),
    publicKey: publicOf(key),
    issuer: o.issuer ?? 'cluster',
    notBeforeMs: WALL_START_MS,
    notAfterMs,
  });
  return { cert, key, certificate: readPair(cert, key) };
}

describe('keys and certificates', () => {
  it('are the same for the same seed, and a certificate is of one key', async () => {
    const port = () => simCertificates({ rng: simRng('x'), client: null });
    const key = await port().generateKey();
    expect(text(await port().generateKey())).toBe(text(key));
    const certificates = port();
    const { cert, key: other } = pair();
    expect(certificates.inspect(bytes(cert + other), bytes(cert + other))).toMatchObject({ commonName: 'system:node:n1' });
    expect(() => certificates.inspect(bytes(cert), key)).toThrow('do not belong together');
    expect(() => certificates.inspect(bytes(cert.slice(0, 40)))).toThrow('no certificate');
    expect(() => certificates.inspect(bytes(cert + other.slice(0, -3)), bytes(other.slice(0, -3)))).toThrow('no private key');
  });

  it('a request tells nothing of its key, has one name for one key, and another for another use', async () => {
    const certificates = simCertificates({ rng: simRng('x'), client: null });
    const key = await certificates.generateKey();
    const template = clientTemplate('n1');
    const one = await certificates.request(key, { template, signer: SIGNERS.client });
    const again = await certificates.request(key, { template, signer: SIGNERS.client });
    const serving = await certificates.request(key, { template, signer: SIGNERS.serving });
    expect(again).toEqual(one);
    expect(serving.name).not.toBe(one.name);
    expect(one.pem).not.toContain(SECRET);
    expect(await certificates.sameRequest(one.pem, again.pem)).toBe(true);
    expect(await certificates.sameRequest(one.pem, 'nonsense')).toBe(false);
  });
});

interface Signing {
  kube: SimKube;
  time: SimTime;
  signs: Signer;
  done: string[];
  ask(count: number): Promise<KubeObject[]>;
  advance(ms: number): Promise<void>;
}
function signing(): Signing {
  const time = new SimTime(simRng('ties'));
  const clock = time.clockFor({ on: true });
  const kube = simKube({ clock, rng: simRng('kube'), latencyMs: () => 0 });
  const done: string[] = [];
  const signs = new Signer({
    kube,
    clock,
    rng: simRng('signer'),
    lifeMsOf: (node) => (node === 'n1' ? LIFE_MS : null),
    on: (node, what) => done.push(`${node} ${what.split(' ')[0]}`),
  });
  const certificates = simCertificates({ rng: simRng('asks'), client: null });
  return {
    kube,
    time,
    signs,
    done,
    async ask(count) {
      const made: KubeObject[] = [];
      for (let i = 0; i < count; i++) {
        const { pem } = await certificates.request(await certificates.generateKey(), {
          template: clientTemplate('n1'),
          signer: SIGNERS.client,
        });
        const spec = { request: btoa(pem), signerName: SIGNERS.client.signerName, usages: [...SIGNERS.client.usages] };
        const posted = kube.handle({ verb: 'POST', path: CSRS, body: { metadata: { generateName: 'csr-' }, spec } });
        if (!posted.ok) throw new Error(posted.failure.message);
        made.push(posted.body as KubeObject);
      }
      return made;
    },
    async advance(ms) {
      const endMs = time.monoMs + ms;
      while (await time.step(endMs));
    },
  };
}
const statusOf = (kube: SimKube, csr: KubeObject): { certificate?: string; conditions?: { type: string }[] } | undefined => {
  const got = kube.handle({ verb: 'GET', path: `${CSRS}/${csr.metadata.name}` });
  return got.ok ? (got.body as { status?: { certificate?: string; conditions?: { type: string }[] } }).status : undefined;
};

describe('the signer', () => {
  it('signs at once in fair weather, for the life that certificates have here', async () => {
    const w = signing();
    const made = await w.ask(5);
    await w.advance(400);
    for (const csr of made) {
      const status = statusOf(w.kube, csr);
      expect(status?.conditions?.[0]?.type).toBe('Approved');
      expect(atob(status?.certificate ?? '')).toContain('"notAfterMs":');
    }
    expect(w.done).toEqual(Array(5).fill('n1 sign'));
    expect(w.signs.troubledAtMs('n1')).toBe(Number.NEGATIVE_INFINITY);
  });

  it('does everything else once it may, says no only so often, and answers what waits when it is healed', async () => {
    const w = signing();
    w.signs.begin();
    await w.ask(200);
    await w.advance(30_000);
    const ways = [...w.signs.counts.keys()].sort();
    expect(ways).toEqual(['deny', 'ended', 'fail', 'foreign', 'garbage', 'incomplete', 'late', 'never', 'remove', 'replace', 'sign']);
    expect((w.signs.counts.get('deny') ?? 0) + (w.signs.counts.get('fail') ?? 0)).toBe(3);
    expect(w.signs.troubledAtMs('n1')).toBeGreaterThan(0);
    const waiting = () => w.kube.store.list('certificatesigningrequests').filter((c) => c.status === undefined);
    expect(waiting().length).toBeGreaterThan(0);
    w.signs.heal();
    expect(waiting()).toEqual([]);
  });
});

describe('the network of a node', () => {
  const NOW_MS = WALL_START_MS + 1_000;
  const request = (o: Partial<CallerRequest> = {}): CallerRequest => ({
    method: 'GET',
    path: '/pods',
    token: null,
    certificate: null,
    signal: new AbortController().signal,
    ...o,
  });
  const at = { host: '0.0.0.0', port: 10_250 };
  const tls = (material: Partial<TlsMaterial> = {}) => {
    const { cert, key } = pair();
    const { renew, ...rest } = { renew: (_: (m: TlsMaterial) => void) => {}, ...{ minVersion: 'TLSv1.2' as const, ciphers: '' } };
    return { ...rest, renew, material: { cert: bytes(cert), key: bytes(key), clientCa: bytes(CLIENT_CA_TEXT), ...material } };
  };
  const heard: HttpRequest[] = [];
  const handler = async (req: HttpRequest): Promise<HttpReply> => {
    heard.push(req);
    return { status: 200, body: 'data' };
  };
  const machine = () => {
    const net = simNet();
    const connect = (power: { on: boolean }) => net.connect(power, { http: () => 'unreachable', taken: 0, closesBadly: false });
    return { net, connect };
  };

  it('has one listener at an address, until it closes or its daemon dies', async () => {
    const { net, connect } = machine();
    const power = { on: true };
    const first = connect(power);
    const open = await first.serveHttp({ ...at, tls: tls() }, handler);
    await expect(first.serveHttp({ ...at, tls: tls() }, handler)).rejects.toThrow('EADDRINUSE');
    await open.close();
    expect(await net.ask(10_250, request(), NOW_MS)).toEqual({ kind: 'refused' });
    await first.serveHttp({ ...at, tls: tls() }, handler);
    expect(await net.ask(10_250, request(), NOW_MS)).toMatchObject({ kind: 'reply', status: 200, body: 'data' });
    power.on = false;
    expect(await net.ask(10_250, request(), NOW_MS)).toEqual({ kind: 'refused' });
    await connect({ on: true }).serveHttp({ ...at, tls: tls() }, handler);
  });

  it('shows a handler what a handshake made of the caller, and shakes no hand without a certificate', async () => {
    const { net, connect } = machine();
    await connect({ on: true }).serveHttp({ ...at, tls: tls() }, handler);
    const kinds: unknown[] = [];
    const unknown = pair({ issuer: 'unknown' }).certificate;
    for (const certificate of [null, pair().certificate, pair({ leftMs: -1 }).certificate, unknown]) {
      await net.ask(10_250, request({ certificate }), NOW_MS);
      kinds.push(heard.at(-1)?.client?.kind);
    }
    expect(kinds).toEqual(['none', 'verified', 'rejected', 'rejected']);
    const none = machine();
    await none.connect({ on: true }).serveHttp({ ...at, tls: tls({ cert: bytes(''), key: bytes('') }) }, handler);
    expect(await none.net.ask(10_250, request(), NOW_MS)).toEqual({ kind: 'no-handshake' });
    await expect(
      connect({ on: true }).serveHttp({ ...at, port: 1, tls: tls({ key: bytes(pair({ seed: 'other' }).key) }) }, handler),
    ).rejects.toThrow('do not belong together');
  });
});

describe('reviews', () => {
  const ask = (path: string, spec: object): unknown => {
    const clock = new SimTime(simRng('t')).clockFor({ on: true });
    const answer = simKube({ clock, rng: simRng('k'), latencyMs: () => 0 }).handle({ verb: 'POST', path, body: { spec } });
    return answer.ok ? (answer.body as { status: unknown }).status : answer.failure.code;
  };
  it('know tokens and rights', () => {
    expect(ask(REVIEWS.token, { token: tokenOf(VIEWER, SECRET) })).toMatchObject({ authenticated: true, user: { username: VIEWER.name } });
    expect(ask(REVIEWS.token, { token: `${SECRET}unknown` })).toMatchObject({ authenticated: false });
    const may = (user: string, subresource: string) =>
      ask(REVIEWS.access, { user, resourceAttributes: { resource: 'nodes', subresource } });
    expect(may(OPERATOR.name, 'proxy')).toEqual({ allowed: true });
    expect(may(VIEWER.name, 'metrics')).toEqual({ allowed: true });
    expect(may(VIEWER.name, 'pods')).toEqual({ allowed: false });
    expect(may(NOBODY.name, 'metrics')).toEqual({ allowed: false });
    expect(may('system:anonymous', 'healthz')).toEqual({ allowed: false });
    expect(ask(REVIEWS.access, [])).toBe(400);
  });
});

describe('a node that gets certificates and serves its API', () => {
  /** Drawn for both, with lives of half a minute. */
  const SEED = 560030;
  it('keeps every invariant while faults rain, the same way each time, and tells no secret', async () => {
    const size = { minutes: 0.5, pods: 3, restMinutesMax: 10 };
    const first = await runSim({ seed: SEED, ...size });
    expect(first.violation).toBeNull();
    expect(first.tuning[0]?.certificates).toMatchObject({ client: 'kept', serving: true, lifeMs: 30_000 });
    expect(first.tuning[0]?.edge).not.toBeNull();
    const told = JSON.stringify([first.tail, first.schedule]);
    expect(told).not.toContain(SECRET);
    // `determinism.test.ts` runs other seeds twice for each commit.
    if (RUNS_ALL) {
      const again = await runSim({ seed: SEED, ...size, schedule: JSON.parse(JSON.stringify(first.schedule)) as readonly Fault[] });
      expect(again.hash).toBe(first.hash);
    }
    for (const path of ['node/api/clientCertificate', 'node/api/servingCertificate'])
      expect(first.edges.get(`${path}: storing -> resting`) ?? 0).toBeGreaterThan(1);
  });
});
