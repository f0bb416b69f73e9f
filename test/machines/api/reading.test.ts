/** The border where objects of the API are read: as Go's decoder reads them, and each object on its own. */
import { setFlagsFromString } from 'node:v8';
import { runInThisContext } from 'node:vm';
import { describe, expect, it } from 'vitest';
import { readAnswer, readItem } from '../../../src/machines/kube/read/answers.ts';
import { KINDS, kindAt } from '../../../src/machines/kube/read/kinds.ts';
import { readShape } from '../../../src/machines/kube/read/read.ts';
import { type KubeResult, UNREADABLE } from '../../../src/machines/kube/request.ts';
import type { Shape } from '../../../src/machines/shape/shape.ts';
import { everyWrong, sample } from './shapes.ts';

const pods = kindAt('/api/v1/pods');
const POD = {
  metadata: { name: 'web', namespace: 'default', uid: 'u', resourceVersion: '7' },
  spec: { containers: [{ name: 'c', image: 'i' }] },
  status: {},
};

describe('a kind of the API', () => {
  it.each([
    ['/api/v1/pods', 'Pod', true],
    ['/api/v1/namespaces/default/pods', 'Pod', true],
    ['/api/v1/namespaces/default/pods/web/status', 'Pod', false],
    ['/api/v1/nodes/n1', 'Node', false],
    ['/api/v1/namespaces/default/serviceaccounts/a', 'ServiceAccount', false],
    ['/api/v1/namespaces/default/serviceaccounts/a/token', 'TokenRequest', false],
    ['/apis/storage.k8s.io/v1/csinodes/n1', 'CSINode', false],
    ['/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/n1', 'Lease', false],
    ['/apis/authentication.k8s.io/v1/tokenreviews', 'TokenReview', true],
    ['/apis/certificates.k8s.io/v1beta1/certificatesigningrequests', 'CertificateSigningRequest', true],
  ])('stands at %s', (path, kind, many) => {
    expect(kindAt(path)).toMatchObject({ kind, many });
  });

  it('is none at other paths', () => {
    for (const path of ['/version', '/api/v1/namespaces/default', '/api/v1/constructor', '', '/']) expect(kindAt(path)).toBeNull();
  });

  it.each(Object.keys(KINDS))('%s: an object that sets every field is read as it is, and each wrong type names its field', (plural) => {
    const { shape } = KINDS[plural] as { shape: Shape };
    const full = sample(shape);
    const read = readShape(full, shape);
    expect(read).toEqual({ ok: true, value: full });
    expect(read.ok && read.value).toBe(full);
    let wrong = 0;
    for (const { path, value, given } of everyWrong(full, shape)) {
      const result = readShape(value, shape);
      if (given === null) expect(result.ok, `${path}: null is absent`).toBe(true);
      else expect(result, `${path}: ${JSON.stringify(given)}`).toMatchObject({ ok: false, problem: expect.stringContaining(`${path}`) });
      wrong += 1;
    }
    expect(wrong).toBeGreaterThan(20);
  });
});

describe('an object', () => {
  it('that needs no change is the very one that came', () => {
    expect(readItem(POD, pods)).toBe(POD);
  });

  it('is no table for V8 where fields of it are null: that takes five times the memory of an object', () => {
    setFlagsFromString('--allow-natives-syntax');
    const isFast = runInThisContext('(object) => %HasFastProperties(object)') as (object: object) => boolean;
    const condition = { type: 'Ready', status: 'True', message: null, lastTransitionTime: '2026-01-01T00:00:00Z' };
    const read = readItem({ ...POD, status: { conditions: [condition] } }, pods) as { status?: { conditions?: object[] } } | null;
    const [found] = read?.status?.conditions ?? [];
    expect(found).toEqual({ type: 'Ready', status: 'True', lastTransitionTime: '2026-01-01T00:00:00Z' });
    expect(isFast(found ?? {})).toBe(true);
  });

  it('has what Go leaves in it: null is absent, a required field has its zero value, a number of 64 bits is kept as well as can be', () => {
    const given = {
      ...POD,
      metadata: { ...POD.metadata, labels: null, creationTimestamp: null },
      spec: {
        containers: [null, { name: 'c', ports: [{ hostPort: null }] }],
        tolerations: [{ tolerationSeconds: 2 ** 63 }],
        volumes: null,
      },
    };
    expect(readItem(given, pods)).toEqual({
      metadata: POD.metadata,
      spec: {
        containers: [
          { name: '', image: '' },
          { name: 'c', image: '', ports: [{ containerPort: 0 }] },
        ],
        tolerations: [{ tolerationSeconds: Number.MAX_SAFE_INTEGER }],
      },
      status: {},
    });
  });

  it('keeps fields that nobody here knows, whatever they are', () => {
    const newer = { ...POD, spec: { ...POD.spec, schedulingGroup: { podGroupName: 'g' }, workloadRef: null } };
    expect(readItem(newer, pods)).toBe(newer);
  });

  it('loses what nobody here knows where that is nested too deeply to be compared or written', () => {
    const deep: unknown = JSON.parse('['.repeat(5_000) + ']'.repeat(5_000));
    const spec = { ...POD.spec, affinity: { podAffinity: deep }, later: deep, kept: [[1]] };
    const pod = { ...POD, later: { deep }, spec };
    expect(readItem(pod, pods)).toEqual({ ...POD, spec: { ...POD.spec, affinity: {}, kept: [[1]] } });
  });

  it('that cannot be read is what names it, with the reason', () => {
    const deleted = { ...POD.metadata, deletionTimestamp: '2024-05-01T10:00:00Z', deletionGracePeriodSeconds: 5, labels: [] };
    const item = readItem({ ...POD, metadata: deleted }, pods);
    const { labels: _, ...named } = deleted;
    expect(item).toEqual({ metadata: named, [UNREADABLE]: 'metadata.labels: must be a mapping, not a list' });
    for (const nobody of [null, 5, [], {}, { metadata: [] }, { metadata: { name: 5 } }, { metadata: { name: '' } }])
      expect(readItem(nobody, pods)).toBeNull();
  });

  it('has times that are times', () => {
    const at = (deletionTimestamp: string) => readItem({ ...POD, metadata: { ...POD.metadata, deletionTimestamp } }, pods)?.[UNREADABLE];
    expect(at('2024-05-01T10:00:00Z')).toBeUndefined();
    expect(at('2024-05-01T10:00:00.123456+02:00')).toBeUndefined();
    expect(at('2024-13-45T99:99:99Z')).toBe('metadata.deletionTimestamp: must be a time, not a string');
    expect(at('soon')).toBe('metadata.deletionTimestamp: must be a time, not a string');
  });
});

describe('an answer', () => {
  const ok = (body: unknown): KubeResult => ({ ok: true, code: 200, body });

  it('whose object cannot be read is a failure that names it; of a write nobody knows its effect', () => {
    const path = '/api/v1/namespaces/default/secrets/s';
    expect(readAnswer({ verb: 'GET', path }, ok({ metadata: { name: 's' }, data: 5 }))).toMatchObject({
      ok: false,
      failure: {
        reason: 'MalformedAnswer',
        message: 'the API server gave a Secret that cannot be read: data: must be a mapping, not a number',
        outcome: 'failed',
      },
    });
    expect(readAnswer({ verb: 'PATCH', path }, ok('text'))).toMatchObject({ ok: false, failure: { outcome: 'unknown' } });
  });

  it('that is a list, that nobody reads, or that is a failure stays as it is', () => {
    const list = ok({ items: [5] });
    expect(readAnswer({ verb: 'GET', path: '/api/v1/pods' }, list)).toBe(list);
    const gone = ok({ kind: 'Status' });
    expect(readAnswer({ verb: 'DELETE', path: '/api/v1/namespaces/default/pods/web' }, gone)).toBe(gone);
    expect(readAnswer({ verb: 'GET', path: '/version' }, list)).toBe(list);
  });
});
