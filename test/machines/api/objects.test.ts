/**
 * What is written to the API server about pods, the node and events, as plain data: patches are applied by the
 * simulated server, so that they are judged by their effect.
 */
import { applyStrategicPatch } from '@actorlet/world/src/kube/kubePatch.ts';
import { describe, expect, it } from 'vitest';
import { COMBINED_PREFIX, EventCorrelator, eventObject, eventPatch, OBJECT_BURST } from '../../../src/machines/api/eventCorrelator.ts';
import { nodeEvents } from '../../../src/machines/api/node/nodeEvents.ts';
import { fieldsNotKept, nodeStatus, nodeStatusPatch, sameNodeStatus, versionShown } from '../../../src/machines/api/node/nodeObject.ts';
import { statusPatch } from '../../../src/machines/api/statusPatch.ts';
import type { RecordedEvent } from '../../../src/machines/foundation/messages.ts';
import type { PodStatus } from '../../../src/machines/kube/types.ts';
import type { RuntimePodsView } from '../../../src/machines/pod/runtime/seen.ts';
import type { CriView } from '../../../src/machines/runtime/cri/messages.ts';

describe('a status patch', () => {
  const api: PodStatus = {
    phase: 'Pending',
    reason: 'Old',
    podIP: '10.0.0.1',
    podIPs: [{ ip: '10.0.0.1' }],
    conditions: [
      { type: 'Ready', status: 'False', reason: 'ContainersNotReady', message: 'm' },
      { type: 'example.com/gate', status: 'True' },
    ],
  };
  it('is nothing where nothing changed', () => {
    expect(statusPatch(api, structuredClone(api))).toBeNull();
  });
  it('applied by the server gives the wanted status and leaves the conditions of others', () => {
    const next: PodStatus = {
      phase: 'Running',
      podIP: '10.0.0.2',
      podIPs: [{ ip: '10.0.0.2' }],
      conditions: [
        { type: 'example.com/gate', status: 'True' },
        { type: 'Ready', status: 'True' },
        { type: 'Initialized', status: 'True' },
      ],
    };
    const patch = statusPatch(api, next);
    const written = applyStrategicPatch(api, patch) as PodStatus;
    expect({ ...written, conditions: undefined }).toEqual({ ...next, conditions: undefined });
    expect([...(written.conditions ?? [])].sort((a, b) => (a.type < b.type ? -1 : 1))).toEqual(
      [...(next.conditions ?? [])].sort((a, b) => (a.type < b.type ? -1 : 1)),
    );
    expect(JSON.stringify(patch)).not.toContain('gate');
  });
  it('takes nothing away that a bare refusal does not say', () => {
    expect(statusPatch({ ...api, qosClass: 'BestEffort' }, { phase: 'Failed', reason: 'X' })).toEqual({
      phase: 'Failed',
      reason: 'X',
      podIP: null,
      podIPs: null,
    });
  });
});

const cri = (o: Partial<CriView> = {}): CriView => ({
  state: 'ready',
  reason: '',
  runtimeName: 'r',
  runtimeVersion: '1',
  runtimeReady: true,
  networkReady: true,
  networkReason: '',
  lastGoodMonoMs: 100_000,
  ...o,
});
const listing = (atMonoMs = 100_000): RuntimePodsView => ({ atMonoMs, pods: new Map(), via: 'poll' });
const readings = (o: object = {}) => ({
  addresses: ['192.0.2.1'],
  hostname: 'n1',
  capacity: { cpu: '4', memory: '1', pods: '110' },
  allocatable: { cpu: '4', memory: '1', pods: '110' },
  nodeInfo: { kubeletVersion: 'v' },
  port: 10_250,
  images: [],
  runtimeHandlers: [],
  cri: cri(),
  listing: listing(),
  shuttingDown: false,
  nowMonoMs: 100_000,
  nowWallMs: 1_000_000,
  ...o,
});

describe('the node status', () => {
  it('keeps the time of change of a condition that stays, and says several reasons in one list', () => {
    const first = nodeStatus({}, readings());
    const second = nodeStatus(first, readings({ nowWallMs: 2_000_000 }));
    expect(sameNodeStatus(first, second)).toBe(true);
    expect(second.conditions?.at(-1)).toMatchObject({
      type: 'Ready',
      lastTransitionTime: '1970-01-01T00:16:40Z',
      lastHeartbeatTime: '1970-01-01T00:33:20Z',
    });
    const third = nodeStatus(second, readings({ shuttingDown: true, cri: cri({ runtimeReady: false }), nowWallMs: 3_000_000 }));
    expect(sameNodeStatus(second, third)).toBe(false);
    expect(third.conditions?.at(-1)).toMatchObject({
      message: '[container runtime not ready: RuntimeReady=false reason: message:, node is shutting down]',
      lastTransitionTime: '1970-01-01T00:50:00Z',
    });
    expect(nodeEvents('n1', second, third)).toEqual([
      { type: 'Normal', reason: 'NodeNotReady', message: 'Node n1 status is now: NodeNotReady' },
    ]);
  });
  it('tells pressures on its first write and Ready only when it flips', () => {
    expect(nodeEvents('n1', {}, nodeStatus({}, readings())).map((e) => e.reason)).toEqual([
      'NodeHasSufficientMemory',
      'NodeHasNoDiskPressure',
      'NodeHasSufficientPID',
    ]);
  });
  it('replaces addresses as a whole and keeps what others put into it (trap 47)', () => {
    const held = {
      ...nodeStatus({}, readings()),
      volumesAttached: [{ name: 'v' }],
      capacity: { cpu: '4', memory: '1', pods: '110', 'example.com/gpu': '2' },
    };
    const next = nodeStatus(held, readings({ addresses: ['192.0.2.9'] }));
    const written = applyStrategicPatch(held, nodeStatusPatch(held, next)) as typeof held;
    expect(written.addresses).toEqual([
      { type: 'InternalIP', address: '192.0.2.9' },
      { type: 'Hostname', address: 'n1' },
    ]);
    expect(written.volumesAttached).toEqual([{ name: 'v' }]);
    expect(written.capacity).toMatchObject({ 'example.com/gpu': '2' });
  });
  it('drops sizes of huge pages that are no more, and what of allocatable is in no capacity (trap 52)', () => {
    const held = {
      ...nodeStatus({}, readings()),
      capacity: { cpu: '4', memory: '1', pods: '110', 'hugepages-1Gi': '1073741824', 'example.com/gpu': '2' },
      allocatable: { cpu: '4', memory: '1', pods: '110', 'hugepages-1Gi': '1073741824', 'example.com/gpu': '2', 'example.com/gone': '1' },
    };
    const next = nodeStatus(held, readings());
    const written = applyStrategicPatch(held, nodeStatusPatch(held, next)) as typeof held;
    expect(written.capacity).toEqual({ cpu: '4', memory: '1', pods: '110', 'example.com/gpu': '2' });
    expect(written.allocatable).toEqual({ cpu: '4', memory: '1', pods: '110', 'example.com/gpu': '2' });
  });
  it('is the same as the server shows it: in its words for amounts, and without empty fields', () => {
    const devices = { 'devices.kubevirt.io/kvm': '1000' };
    const images = [
      { names: ['a'], sizeBytes: 3 },
      { names: [], sizeBytes: 2 },
      { names: ['b'], sizeBytes: 0 },
    ];
    const capacity = { cpu: '4', memory: '16679869000', pods: '1000', ...devices };
    const r = readings({ capacity, allocatable: capacity, images });
    const amounts = { cpu: '4', memory: '16679869k', pods: '1k', 'devices.kubevirt.io/kvm': '1k' };
    const shown = {
      ...nodeStatus({}, r),
      ...{ capacity: amounts, allocatable: amounts },
      images: [{ names: ['a'], sizeBytes: 3 }, { sizeBytes: 2 }, { names: ['b'] }],
    };
    expect(sameNodeStatus(shown, nodeStatus(shown, r))).toBe(true);
  });
  it('names the handlers of the runtime, and claims no feature whose pods it refuses', () => {
    const runtimeHandlers = ['', 'kata'].map((name) => ({ name, features: { recursiveReadOnlyMounts: false, userNamespaces: false } }));
    expect(nodeStatus({}, readings({ runtimeHandlers }))).toMatchObject({ runtimeHandlers });
    expect(nodeStatus({}, readings())).not.toHaveProperty('runtimeHandlers');
    expect(nodeStatus({}, readings())).not.toHaveProperty('features');
  });
  it('declares its features, and knows what an older server does not keep', () => {
    const declaredFeatures = ['InPlacePodVerticalScalingInitContainers'];
    const sent = nodeStatus({}, readings({ declaredFeatures }));
    expect(sent).toMatchObject({ declaredFeatures });
    expect(fieldsNotKept(sent, sent)).toEqual([]);
    expect(fieldsNotKept(sent, nodeStatus({}, readings()))).toEqual(['declaredFeatures']);
  });
  it('has the swap of the machine, and takes it back when there is none any more', () => {
    const held = nodeStatus({}, readings({ swapBytes: 4096 }));
    expect(held.nodeInfo?.swap).toEqual({ capacity: 4096 });
    const next = nodeStatus(held, readings());
    expect(applyStrategicPatch(held, nodeStatusPatch(held, next))).toMatchObject({
      nodeInfo: expect.not.objectContaining({ swap: expect.anything() }),
    });
    expect(nodeStatus({}, readings({ swapBytes: 0 })).nodeInfo).not.toHaveProperty('swap');
  });
  it('tells a reboot by the boot id, and once', () => {
    const boot = (bootID: string) => readings({ nodeInfo: { bootID } });
    const before = nodeStatus({}, boot('a'));
    const after = nodeStatus(before, boot('b'));
    expect(nodeEvents('n1', before, after)).toEqual([
      { type: 'Warning', reason: 'Rebooted', message: 'Node n1 has been rebooted, boot id: b' },
    ]);
    expect([nodeEvents('n1', after, nodeStatus(after, boot('b'))), nodeEvents('n1', after, nodeStatus(after, boot('')))]).toEqual([[], []]);
  });
});

describe('the ledger of events', () => {
  const event = (message: string, o: Partial<RecordedEvent> = {}): RecordedEvent => ({
    atMs: 1_000_000,
    type: 'Normal',
    reason: 'Pulled',
    message,
    pod: { uid: 'u1', name: 'web', namespace: 'shop' },
    count: 1,
    ...o,
  });
  const at = (monoMs = 0) => ({ wallMs: 1_000_000 + monoMs, monoMs });

  it('creates once and counts repeats into it, also those that came while it was sent', () => {
    const ledger = new EventCorrelator('n1');
    ledger.take(event('a'), at());
    const first = ledger.next();
    if (first === null) throw new Error('nothing waits');
    ledger.take(event('a', { atMs: 1_005_000 }), at(5_000));
    ledger.done(first);
    const second = ledger.next();
    expect(second).toMatchObject({
      name: first.name,
      namespace: 'shop',
      exists: true,
      count: 2,
      firstAtMs: 1_000_000,
      lastAtMs: 1_005_000,
    });
    if (second !== null) {
      expect(eventPatch(second)).toEqual({ count: 2, lastTimestamp: '1970-01-01T00:16:45Z', message: 'a' });
      expect(eventObject(second, 'n1')).toMatchObject({
        involvedObject: { kind: 'Pod', uid: 'u1', namespace: 'shop' },
        source: { component: 'kubelet', host: 'n1' },
      });
      ledger.recreate(second);
    }
    expect(ledger.next()?.exists).toBe(false);
  });
  it('combines what is only different in its words, from the tenth on', () => {
    const ledger = new EventCorrelator('n1');
    for (let i = 0; i < 13; i++) ledger.take(event(`image ${i}`), at());
    expect(ledger.size).toBe(10);
    const messages: string[] = [];
    for (let p = ledger.next(); p !== null; p = ledger.next()) {
      messages.push(`${p.message} x${p.count}`);
      ledger.done(p);
    }
    expect(messages.at(-1)).toBe(`${COMBINED_PREFIX}image 12 x4`);
  });
  it('goes on combining while they come, and starts anew after ten minutes without', () => {
    const ledger = new EventCorrelator('n1');
    for (let i = 0; i < 10; i++) ledger.take(event(`image ${i}`), at());
    // Ten minutes after the first and not after the last: still one row.
    for (let i = 10; i < 12; i++) ledger.take(event(`image ${i}`), at((i - 9) * 400_000));
    expect(ledger.size).toBe(10);
    ledger.take(event('image 12'), at(800_000 + 600_001));
    expect(ledger.size).toBe(11);
    const messages: string[] = [];
    for (let p = ledger.next(); p !== null; p = ledger.next()) {
      messages.push(p.message);
      ledger.done(p);
    }
    expect(messages.slice(-2)).toEqual([`${COMBINED_PREFIX}image 11`, 'image 12']);
  });
  it('lets one object say so much at once and then one thing per five minutes', () => {
    const ledger = new EventCorrelator('n1');
    for (let i = 0; i < OBJECT_BURST + 5; i++) ledger.take(event('x', { reason: `R${i}` }), at());
    expect([ledger.size, ledger.dropped]).toEqual([OBJECT_BURST, 5]);
    ledger.take(event('x', { reason: 'other', pod: { uid: 'u2', name: 'b', namespace: 'shop' } }), at());
    ledger.take(event('x', { reason: 'later' }), at(301_000));
    expect([ledger.size, ledger.dropped]).toEqual([OBJECT_BURST + 2, 5]);
  });
  it('counts what it cut into the next one of its kind', () => {
    const ledger = new EventCorrelator('n1');
    const send = (): void => {
      for (let p = ledger.next(); p !== null; p = ledger.next()) ledger.done(p);
    };
    for (let i = 0; i < OBJECT_BURST + 5; i++) ledger.take(event('x'), at(i));
    ledger.take(event('y', { atMs: 1_060_000 }), at(60_000));
    send();
    ledger.take(event('x', { atMs: 1_301_000 }), at(301_000));
    expect(ledger.next()).toMatchObject({ message: 'x', count: OBJECT_BURST + 6, exists: true });
    send();
    ledger.take(event('y', { atMs: 1_602_000 }), at(602_000));
    expect(ledger.next()).toMatchObject({ message: 'y', count: 2, exists: false, firstAtMs: 1_060_000, lastAtMs: 1_602_000 });
  });
  it('forgets what the server has forgotten, an hour after it came last', () => {
    const ledger = new EventCorrelator('n1');
    const taken = (monoMs: number) => {
      ledger.take(event('a'), at(monoMs));
      const sent = ledger.next();
      if (sent === null) throw new Error('nothing waits');
      ledger.done(sent);
      return [sent.exists, sent.count];
    };
    expect([taken(0), taken(3_500_000), taken(3_500_000 + 3_600_001)]).toEqual([
      [false, 1],
      [true, 2],
      [false, 1],
    ]);
  });
  it('tells the same words about another part of the pod apart', () => {
    const ledger = new EventCorrelator('n1');
    for (const fieldPath of ['spec.containers{a}', 'spec.containers{b}', 'spec.containers{a}'])
      ledger.take(event('x', { fieldPath }), at());
    const counts: number[] = [];
    for (let p = ledger.next(); p !== null; p = ledger.next()) {
      counts.push(p.count);
      ledger.done(p);
    }
    expect(counts).toEqual([2, 1]);
  });
  it('has a name that the server takes, also about a pod whose own is as long as one can be', () => {
    const ledger = new EventCorrelator('n1');
    ledger.take(event('x', { pod: { uid: 'u1', name: `${'a'.repeat(241)}-${'b'.repeat(11)}`, namespace: 'shop' } }), at());
    ledger.take(event('x', { pod: { uid: 'u2', name: `${'a'.repeat(230)}.${'b'.repeat(22)}`, namespace: 'shop' } }), at());
    for (let p = ledger.next(); p !== null; p = ledger.next()) {
      expect(p.name.length).toBeLessThanOrEqual(253);
      expect(p.name).toMatch(/^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/);
      ledger.done(p);
    }
  });
  it('counts warnings and what is ordinary apart: neither takes the other’s place', () => {
    const ledger = new EventCorrelator('n1');
    for (let i = 0; i < OBJECT_BURST + 5; i++) ledger.take(event('x', { type: 'Warning', reason: `R${i}` }), at());
    ledger.take(event('x', { type: 'Normal', reason: 'Killing' }), at());
    expect([ledger.size, ledger.dropped]).toEqual([OBJECT_BURST + 1, 5]);
  });
});

it.each([
  ['v2.1.9', '2.1.9'],
  ['1.6.20~ds1', '1.6.20'],
  ['v2.0.0-rc.1+azure', '2.0.0-rc.1+azure'],
  ['1.7', '1.7'],
  ['1.07.2-dev', '1.7.2'],
  ['unknown', 'Unknown'],
])('shows version %s of a runtime as %s', (text, shown) => {
  expect(versionShown(text)).toBe(shown);
});
