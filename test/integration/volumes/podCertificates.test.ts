/** Certificates of pods and trust anchors of the cluster, in files of projected volumes: a whole node in virtual time. */
import { describe, expect } from 'vitest';
import { pemOf } from '../../../src/machines/data/pem.ts';
import { create, dirOf, drop, events, file, isReady, NS, post } from '../cluster/clusterPods.ts';
import { itWith } from '../onNode.ts';
import { type VirtualNode, virtualNode } from '../virtualNode.ts';
import {
  anchor,
  bundleVolume,
  certificateVolume,
  GROUP,
  keyOf,
  namesKey,
  refuse,
  remove,
  requestsOf,
  sign,
  withCertificates,
} from './podSigner.ts';

const node = () => virtualNode(withCertificates());
const it = itWith(node);
function mounting(h: VirtualNode, volume: object) {
  const { name } = volume as { name: string };
  if (!h.kube.handle({ verb: 'GET', path: `${NS}/serviceaccounts/builder` }).ok)
    post(h, 'serviceaccounts', { metadata: { name: 'builder' } });
  return create(h, 'web', {
    container: { volumeMounts: [{ name, mountPath: '/files' }] },
    spec: { serviceAccountName: 'builder', volumes: [volume] },
  });
}
const asked = (h: VirtualNode, n: number) => h.until(`${n} requests`, () => requestsOf(h).length === n, 700_000);
const MINUTES = 60_000;

describe('a certificate of a pod', () => {
  it('is asked for with a key of the node, written in one step, and renewed in time', async ({ h }) => {
    const web = mounting(h, certificateVolume({ maxExpirationSeconds: 3_600, userAnnotations: { 'example.com/for': 'tests' } }));
    await asked(h, 1);
    expect(requestsOf(h)[0]).toMatchObject({
      apiVersion: 'certificates.k8s.io/v1beta1',
      metadata: { namespace: 'default', ownerReferences: [{ kind: 'Pod', name: 'web', uid: web.metadata.uid }] },
      spec: {
        signerName: 'example.com/signer',
        podName: 'web',
        podUID: web.metadata.uid,
        serviceAccountName: 'builder',
        nodeName: 'n1',
        maxExpirationSeconds: 3_600,
        unverifiedUserAnnotations: { 'example.com/for': 'tests' },
      },
    });
    await h.until('it waits', () => events(h, 'FailedMount').some((said) => said.includes('credential bundle is not issued yet')));
    sign(h);
    await h.until('Ready', () => isReady(h, 'web'));
    const dir = dirOf(web, 'projected', 'identity');
    const files = async () => ({
      key: await file(h, dir, 'key.pem'),
      chain: await file(h, dir, 'chain.pem'),
      bundle: await file(h, dir, 'bundle.pem'),
    });
    const first = await files();
    const [request] = requestsOf(h);
    expect(request === undefined ? '' : keyOf(request)).toBe(`ED25519 ${namesKey(first.key)}`);
    expect(first.chain).toBe(pemOf('CERTIFICATE', `cert of ED25519 ${namesKey(first.key)}`));
    expect(first.bundle).toBe(first.key + first.chain);
    await h.advance(29 * MINUTES);
    expect(requestsOf(h)).toHaveLength(1);
    await asked(h, 2);
    // The old one serves until the new one is there.
    expect(await files()).toEqual(first);
    sign(h);
    await h.advance(2_000);
    const second = await files();
    expect(second.key).not.toBe(first.key);
    expect(second.chain).toBe(pemOf('CERTIFICATE', `cert of ED25519 ${namesKey(second.key)}`));
    expect(isReady(h, 'web')).toBe(true);
    drop(h, 'pods/web');
    await h.until('gone', () => !h.fs.has(dir), 200_000);
    await h.advance(40 * MINUTES);
    expect(requestsOf(h)).toHaveLength(2);
  });

  it.each([['Denied', 'denied'] as const, ['Failed', 'failed'] as const])('%s is said, and not asked for again', async (type, word) => {
    await using h = await node();
    mounting(h, certificateVolume());
    await asked(h, 1);
    refuse(h, type);
    const words = `PodCertificateRequest was permanently ${word}: reason="Policy" message="not for this account"`;
    await h.until('the pod is told', () => events(h, 'FailedMount').some((said) => said.includes(words)), 700_000);
    expect(events(h, type)).toHaveLength(1);
    await h.advance(20 * MINUTES);
    expect(requestsOf(h)).toHaveLength(1);
    expect(isReady(h, 'web')).toBe(false);
  });

  it('whose request is removed is asked for again; that its time is over is said once', async ({ h }) => {
    mounting(h, certificateVolume());
    await asked(h, 1);
    for (const request of requestsOf(h)) remove(h, request);
    await asked(h, 1);
    sign(h);
    await h.until('Ready', () => isReady(h, 'web'));
    await h.advance(70 * MINUTES);
    expect(events(h, 'CertificateOverdueForRefresh')).toHaveLength(1);
    expect(events(h, 'CertificateExpired')).toHaveLength(1);
    expect(await h.metrics.render()).toContain('kubelet_podcertificate_states{signer_name="example.com/signer",state="expired"} 1');
    expect(isReady(h, 'web')).toBe(true);
    sign(h);
    await h.advance(2_000);
    expect(await h.metrics.render()).toContain('kubelet_podcertificate_states{signer_name="example.com/signer",state="fresh"} 1');
  });

  it('that expires while the API server is away stays whole in its files, and is renewed when the server is back', async ({ h }) => {
    const web = mounting(h, certificateVolume());
    await asked(h, 1);
    sign(h);
    await h.until('Ready', () => isReady(h, 'web'));
    const dir = dirOf(web, 'projected', 'identity');
    // At every moment key, chain and bundle are of one certificate.
    const whole = async (): Promise<string> => {
      const [key, chain, bundle] = await Promise.all(['key.pem', 'chain.pem', 'bundle.pem'].map((name) => file(h, dir, name)));
      expect(chain).toBe(pemOf('CERTIFICATE', `cert of ED25519 ${namesKey(key ?? '')}`));
      expect(bundle).toBe(`${key}${chain}`);
      return chain ?? '';
    };
    const first = await whole();
    h.kube.trouble.down = true;
    h.kube.cutWatches('truncate');
    for (let minute = 0; minute < 70; minute += 10) {
      await h.advance(10 * MINUTES);
      expect(await whole()).toBe(first);
    }
    expect(requestsOf(h)).toHaveLength(1);
    expect(events(h, 'CertificateExpired')).toHaveLength(1);
    h.kube.trouble.down = false;
    await asked(h, 2);
    sign(h);
    // The watch of requests is tried again with a growing wait, of 30 s at most.
    for (let seconds = 0; seconds < 40 && (await whole()) === first; seconds += 5) await h.advance(5_000);
    expect(await whole()).not.toBe(first);
    expect(isReady(h, 'web')).toBe(true);
  });

  it('outlives the daemon in its files; the next daemon asks for another', async ({ h }) => {
    const web = mounting(h, certificateVolume());
    await asked(h, 1);
    sign(h);
    await h.until('Ready', () => isReady(h, 'web'));
    const chain = () => file(h, dirOf(web, 'projected', 'identity'), 'chain.pem');
    const before = await chain();
    await h.restart();
    await asked(h, 2);
    expect(await chain()).toBe(before);
    sign(h);
    await h.until('Ready', () => isReady(h, 'web'));
    await h.advance(10_000);
    expect(await chain()).not.toBe(before);
  });
});

describe('trust anchors', () => {
  const read = (h: VirtualNode, web: ReturnType<typeof mounting>) => file(h, dirOf(web, 'projected', 'anchors'), 'anchors.pem');
  const texts = (...all: string[]) => all.map((t) => pemOf('CERTIFICATE', t)).join('');

  it('of a signer and labels are joined, each once, and follow the cluster', async ({ h }) => {
    anchor(h, 'a', { signerName: 'x.com/s', labels: { live: 'yes' }, texts: ['two', 'one'] });
    anchor(h, 'b', { signerName: 'x.com/s', labels: { live: 'yes' }, texts: ['one', 'three'] });
    anchor(h, 'c', { signerName: 'x.com/s', labels: { live: 'no' }, texts: ['four'] });
    anchor(h, 'd', { signerName: 'y.com/s', labels: { live: 'yes' }, texts: ['five'] });
    const web = mounting(h, bundleVolume({ signerName: 'x.com/s', labelSelector: { matchLabels: { live: 'yes' } } }));
    await h.until('Ready', () => isReady(h, 'web'));
    expect(await read(h, web)).toBe(texts('one', 'three', 'two'));
    anchor(h, 'e', { signerName: 'x.com/s', labels: { live: 'yes' }, texts: ['zero'] });
    await h.advance(5_000);
    expect(await read(h, web)).toBe(texts('one', 'three', 'two', 'zero'));
  });

  it('of a name that is missing keep the pod waiting, except where they are optional', async ({ h }) => {
    const web = mounting(h, bundleVolume({ name: 'late' }));
    await h.until('it waits', () => events(h, 'FailedMount').some((said) => said.includes('"late" not found')));
    anchor(h, 'late', { texts: ['one'] });
    await h.until('Ready', () => isReady(h, 'web'));
    expect(await read(h, web)).toBe(texts('one'));
    const gone = h.kube.handle({ verb: 'DELETE', path: `${GROUP}/clustertrustbundles/late` });
    expect(gone.ok).toBe(true);
    await h.advance(5_000);
    expect(await read(h, web)).toBe(texts('one'));
    const other = create(h, 'other', {
      container: { volumeMounts: [{ name: 'anchors', mountPath: '/files' }] },
      spec: { volumes: [bundleVolume({ name: 'never', optional: true })] },
    });
    await h.until('Ready', () => isReady(h, 'other'));
    expect(await read(h, other)).toBe('');
  });

  it('and certificates are refused in words where their gates are off', async () => {
    await using h = await virtualNode({ cluster: true });
    mounting(h, bundleVolume({ name: 'a' }));
    await h.until('it is said', () =>
      events(h, 'FailedMount').some((said) => said.includes('feature gate ClusterTrustBundleProjection is off')),
    );
  });
});
