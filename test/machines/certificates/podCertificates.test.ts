/** Certificates of pods and trust anchors: what is asked for, what an answer means, and what stands in the files. */
import { describe, expect, it } from 'vitest';
import { pemBlocks, pemOf } from '../../../src/machines/data/pem.ts';
import type { PodCertificate } from '../../../src/machines/kube/objects.ts';
import type { KubeObject } from '../../../src/machines/kube/request.ts';
import {
  certificateRequest,
  certificateState,
  certificateVerdict,
  pendingRequest,
} from '../../../src/machines/services/certificates/rules.ts';
import { toTrustBundle, trustAnchors } from '../../../src/machines/services/certificates/trustBundles.ts';

const MINUTE = 60_000;
const certificate: PodCertificate = {
  pod: { name: 'web', namespace: 'ns', uid: 'u1' },
  serviceAccount: 'builder',
  volume: 'identity',
  index: 0,
  signerName: 'x.com/s',
  keyType: 'ED25519',
  maxExpirationSeconds: null,
  userAnnotations: {},
};
const made = { metadata: { name: 'req-1', namespace: 'ns', uid: 'r1', creationTimestamp: '2026-01-01T00:00:00Z' } };
const atMs = Date.parse('2026-01-01T00:00:00Z');
const request = pendingRequest(made, { key: 'KEY', wallMs: 0, random: 0.5 });
const answered = (status: object, more: object = {}): KubeObject => ({ ...made, status, ...more }) as KubeObject;
const verdict = (object: KubeObject | undefined, afterMs = 0) =>
  certificateVerdict(request, object, { wallMs: atMs + afterMs, random: 0.5 });
const chain = pemOf('CERTIFICATE', 'leaf');
const ends = { beginRefreshAt: '2026-01-01T00:30:00Z', notAfter: '2026-01-01T01:00:00Z' };
const issued = (more: object = {}) => answered({ conditions: [{ type: 'Issued' }], certificateChain: `words\n${chain}`, ...ends, ...more });

describe('a request', () => {
  it('says no more than the pod does', () => {
    const of = { stub: 'c3R1Yg==', nodeName: 'n1', nodeUid: 'nu', accountUid: 'au' };
    expect(certificateRequest(certificate, of)).toEqual({
      apiVersion: 'certificates.k8s.io/v1',
      kind: 'PodCertificateRequest',
      metadata: { namespace: 'ns', generateName: 'req-', ownerReferences: [{ apiVersion: 'v1', kind: 'Pod', name: 'web', uid: 'u1' }] },
      spec: {
        signerName: 'x.com/s',
        ...{ podName: 'web', podUID: 'u1', serviceAccountName: 'builder', serviceAccountUID: 'au', nodeName: 'n1', nodeUID: 'nu' },
        stubPKCS10Request: 'c3R1Yg==',
      },
    });
  });

  it('that the API server does not show is waited for, 10 minutes and the jitter', () => {
    expect(verdict(undefined, 12 * MINUTE)).toEqual({ kind: 'pending' });
    expect(verdict(undefined, 13 * MINUTE)).toMatchObject({ kind: 'gone' });
    expect(verdict({ ...made, metadata: { ...made.metadata, uid: 'r2' } })).toMatchObject({ kind: 'gone' });
    expect(verdict(answered({}))).toEqual({ kind: 'pending' });
    expect(verdict(answered({ conditions: 'all' }))).toEqual({ kind: 'pending' });
  });

  it('that was issued gives the chain without the words around it, renewed up to 5 minutes after the signer says', () => {
    const held = { key: 'KEY', chain, beginRefreshAtMs: atMs + 32.5 * MINUTE, notAfterMs: atMs + 60 * MINUTE };
    expect(verdict(issued())).toEqual({ kind: 'issued', held });
    expect(verdict(issued({ certificateChain: 'none' }))).toMatchObject({ kind: 'gone', why: expect.stringContaining('no certificate') });
    expect(verdict(issued({ notAfter: 'soon' }))).toMatchObject({ kind: 'gone' });
  });

  it('that was denied or failed says why', () => {
    const refused = (type: string) => answered({ conditions: [{ type, status: 'True', reason: 'R', message: 'M' }] });
    expect(verdict(refused('Denied'))).toEqual({
      kind: 'denied',
      words: 'PodCertificateRequest was permanently denied: reason="R" message="M"',
      said: 'PodCertificateRequest ns/req-1 was denied, reason="R", message="M"',
    });
    expect(verdict(refused('Failed'))).toMatchObject({ kind: 'failed', said: expect.stringContaining(' failed, reason="R"') });
  });

  it.each([
    ['not_yet_issued', null, null, 0],
    ['denied', 'denied' as const, null, 0],
    ['failed', 'failed' as const, null, 0],
    ['fresh', null, {}, 10 * MINUTE],
    ['overdue_for_refresh', null, {}, 11 * MINUTE],
    ['expired', null, {}, 61 * MINUTE],
  ])('is counted as %s', (state, refused, held, wallMs) => {
    const present = held === null ? null : { beginRefreshAtMs: 0, notAfterMs: 60 * MINUTE };
    expect(certificateState({ refused, held: present }, wallMs)).toBe(state);
  });
});

describe('trust anchors', () => {
  const bundle = (name: string, o: { signerName?: string; labels?: object; trustBundle?: unknown } = {}) =>
    toTrustBundle({ metadata: { name, labels: o.labels }, spec: { trustBundle: chain, ...o } });
  const bundles = [bundle('a', { signerName: 's', labels: { t: '1' } }), bundle('b', { signerName: 's' }), bundle('c')];
  const by = (labelSelector: Record<string, unknown> | null, signerName = 's') =>
    trustAnchors(bundles, { name: null, signerName, labelSelector });
  const expression = (operator: string, values?: string[]) => by({ matchExpressions: [{ key: 't', operator, values }] });

  it('are chosen by name, or by signer and labels; no selector chooses nothing, an empty one everything', () => {
    expect(trustAnchors(bundles, { name: 'c', signerName: '', labelSelector: null })).toEqual({ kind: 'found', value: chain });
    expect(by(null)).toMatchObject({
      kind: 'absent',
      message: 'combination of signerName and labelSelector matched zero ClusterTrustBundles',
    });
    expect(by({})).toEqual({ kind: 'found', value: chain });
    expect(by({}, 'other').kind).toBe('absent');
    expect(by({ matchLabels: { t: '2' } }).kind).toBe('absent');
    expect(by({ matchLabels: { constructor: '1' } }).kind).toBe('absent');
    expect(
      [expression('In', ['1']), expression('NotIn', ['1']), expression('Exists'), expression('DoesNotExist')].map((r) => r.kind),
    ).toEqual(Array.from({ length: 4 }, () => 'found'));
    expect([expression('In', ['2']), expression('Between')].map((r) => r.kind)).toEqual(['absent', 'absent']);
  });

  it('that cannot be read are none', () => {
    expect(bundle('x', { trustBundle: 7 }).anchors).toEqual([]);
    expect(toTrustBundle({ metadata: { name: 'x' }, spec: null }).signerName).toBe('');
  });
});

describe('PEM text', () => {
  it('is read with headers, other words and line ends of any kind, and written in lines of 64', () => {
    const long = 'x'.repeat(100);
    const text = pemOf('CERTIFICATE', long);
    expect(Math.max(...text.split('\n').map((line) => line.length))).toBe(64);
    const headed = text.replace('-----\n', '-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: a-b\n\n').replaceAll('\n', '\r\n');
    expect(pemBlocks(`hello\n${headed}and\n${chain}`)).toEqual([long, 'leaf']);
    expect(pemBlocks('-----BEGIN A-----\n!!!\n-----END A-----\n-----BEGIN B-----\nAA')).toEqual([]);
    expect(pemBlocks('-----BEGIN A-----\n'.repeat(100_000))).toEqual([]);
  });
});
