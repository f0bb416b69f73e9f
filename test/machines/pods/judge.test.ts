/** What admission answers about a pod, by the facts it is judged by; which pods make room for a critical one. */
import { describe, expect, it } from 'vitest';
import type { Pod } from '../../../src/machines/kube/types.ts';
import { requestOf } from '../../../src/machines/pod/resources/requests.ts';
import { SET_ASIDE_ANNOTATION } from '../../../src/machines/pod/setAside.ts';
import { type AdmissionFacts, holdsRoom, isLeaving, judge, makeRoom } from '../../../src/machines/pods/admission/judge.ts';
import type { Rec } from '../../../src/machines/pods/manager/records.ts';
import { container, pod } from './fixtures.ts';

const CRITICAL = 2_000_000_000;
const NOTHING = { pods: new Map(), atMonoMs: 0 } as unknown as AdmissionFacts['listing'];
const RUNS = {
  pods: new Map([['uid-1', { uid: 'uid-1', name: 'p', namespace: 'ns', sandboxes: [{ state: 'ready' }], containers: [{}] }]]),
  atMonoMs: 0,
} as unknown as AdmissionFacts['listing'];

function facts(o: Partial<AdmissionFacts> = {}): AdmissionFacts {
  return {
    own: undefined,
    listing: NOTHING,
    room: { others: [], podsMax: 110, allocatable: { cpu: '2', memory: '4Gi' } },
    node: { name: 'node-a', labels: {}, taints: [] },
    nodeMayBeOld: false,
    ability: { sysctls: [] },
    strictGroups: null,
    pressures: [],
    shutsDown: false,
    ...o,
  };
}
const full = { others: [], podsMax: 0, allocatable: {} };
const said = (p: Pod, o?: Partial<AdmissionFacts>) => {
  const judged = judge(p, facts(o));
  return judged.is === 'refused' ? judged.refusal.reason : judged.is === 'later' ? `later: ${judged.first}` : judged.is;
};
const record = (p: Pod, state: Rec['state'] = { is: 'waiting' }): Rec => ({
  ...{ pod: p, source: 'api', seenAtMs: 0, life: 1, renewed: false, causes: [], way: [], worker: null },
  state,
});

describe('a pod', () => {
  it('that fits is asked about at the CPU and device managers; one that was admitted before is not', () => {
    expect(judge(pod(), facts())).toEqual({ is: 'fits', allocates: true });
    expect(judge(pod(), facts({ own: record(pod()), room: full }))).toEqual({ is: 'fits', allocates: false });
  });

  it('without room waits for the first listing of the runtime, and keeps its place where it runs already', () => {
    expect(said(pod(), { room: full, listing: undefined })).toBe('later: listing');
    expect(said(pod(), { room: full })).toBe('OutOfpods');
    expect(said(pod(), { room: full, listing: RUNS })).toBe('fits');
    expect(said(pod({}, { status: { phase: 'Succeeded' } }), { room: full, listing: undefined })).toBe('fits');
  });

  it('that the labels of the node keep away waits while these may be old', () => {
    const picky = pod({ nodeSelector: { disk: 'ssd' } });
    expect(said(picky, { nodeMayBeOld: true })).toBe('later: node');
    expect(said(picky)).toBe('NodeAffinity');
  });

  it('that wants strict groups waits until the runtime was asked, unless it was admitted before', () => {
    const strict = pod({ securityContext: { supplementalGroupsPolicy: 'Strict' } });
    const reason = 'SupplementalGroupsPolicyNotSupported';
    expect([null, false, true].map((strictGroups) => said(strict, { strictGroups }))).toEqual(['later: runtime', reason, 'fits']);
    expect([null, false, true].map((strictGroups) => said(strict, { strictGroups, own: record(pod()) }))).toEqual(['fits', reason, 'fits']);
  });

  it('is refused under pressure before room is asked about, and on a node that shuts down when all else is well', () => {
    expect(said(pod(), { pressures: ['DiskPressure'], room: full })).toBe('Evicted');
    expect(said(pod(), { shutsDown: true, room: full })).toBe('OutOfpods');
    expect(said(pod(), { shutsDown: true })).toBe('NodeShutdown');
  });

  it('that is set aside, or was refused in this definition, stays so', () => {
    const aside = pod({}, { metadata: { annotations: { [SET_ASIDE_ANNOTATION]: 'it killed the daemon' } } });
    expect(said(aside, { own: record(pod()) })).toBe('SetAside');
    const refused = record(pod(), { is: 'refused', verdict: { kind: 'rejected', reason: 'OutOfcpu', eviction: null } });
    expect(judge(pod(), facts({ own: refused, room: full }))).toEqual({ is: 'fits', allocates: false });
  });

  it('is short of room where it is critical, unless it is deleted or the node shuts down', () => {
    const critical = pod({ priority: CRITICAL });
    expect(said(critical, { room: full })).toBe('short');
    expect(said(critical, { room: full, shutsDown: true })).toBe('OutOfpods');
    expect(said(pod({ priority: CRITICAL }, { metadata: { deletionTimestamp: '2026-01-01T00:00:00Z' } }), { room: full })).toBe(
      'OutOfpods',
    );
  });
});

describe('room for a critical pod', () => {
  const asking = (uid: string, cpu: string, priority?: number): Pod =>
    pod(
      { containers: [container('c', { resources: { requests: { cpu } } })], ...(priority === undefined ? {} : { priority }) },
      { metadata: { name: uid, uid } },
    );
  const critical = asking('critical', '1', CRITICAL);
  const made = (others: Pod[], o: { leaves?: string[]; late?: Pod[] } = {}) => {
    const room = { others, podsMax: 110, allocatable: { cpu: '1' }, requests: requestOf };
    const found = makeRoom(critical, room, { leaves: (uid) => o.leaves?.includes(uid) === true, late: () => o.late ?? [] });
    return found.is === 'waits' ? found.victims.map((p) => p.metadata.uid) : found.is;
  };
  const [web, vital] = [asking('web', '500m'), asking('vital', '500m', CRITICAL)];

  it('is made by pods that are less important, and by no others', () => {
    expect(made([web])).toEqual(['web']);
    expect(made([vital])).toBe('refused');
  });

  it('is waited for while others leave; one whose time is over counts no longer', () => {
    expect(made([web], { leaves: ['web'] })).toEqual([]);
    expect(made([web], { leaves: ['web'], late: [web] })).toBe('overdue');
    const other = asking('other', '500m');
    expect(made([web, other], { leaves: ['web', 'other'], late: [web] })).toEqual([]);
  });

  it('is held by pods that are admitted and not over, whether they leave or not', () => {
    const records = new Map<string, Rec>([
      ['web', record(web)],
      ['refused', record(web, { is: 'refused', verdict: { kind: 'rejected', reason: 'OutOfcpu', eviction: null } })],
      ['leaving', record(web, { is: 'leaving', verdict: null, listed: null, next: null })],
      ['over', record(pod({}, { status: { phase: 'Failed' } }))],
    ]);
    const which = (is: (rec: Rec) => boolean) => [...records].flatMap(([name, rec]) => (is(rec) ? [name] : []));
    expect([which((rec) => holdsRoom(rec, NOTHING)), which(isLeaving)]).toEqual([['web', 'leaving'], ['leaving']]);
  });
});
