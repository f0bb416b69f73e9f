/**
 * State files below the root directory, as releases of the kubelet from 1.30 to 1.38 and earlier builds of this agent left them: each is
 * read, or answered in words. Checksums that are numbers are of the kubelet's own tests.
 */
import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { decodeClaims } from '../../src/machines/allocation/claims/checkpoint.ts';
import { cpuStateChecksum, openCpuState } from '../../src/machines/allocation/cpus/file.ts';
import { checkpointSum, decodeCheckpoint as decodeDevices } from '../../src/machines/allocation/devices/checkpoint.ts';
import { openMemoryState } from '../../src/machines/allocation/memory/file.ts';
import { decodeCheckpoint, encodeCheckpoint } from '../../src/machines/foundation/checkpoint.ts';
import { ALLOCATED } from '../../src/machines/foundation/messages.ts';
import { OLDER_ALLOCATIONS, readOlderPods, readPods } from '../../src/machines/pods/resize/allocation.ts';
import { decodeState } from '../../src/machines/reclaim/nodeShutdown/stateFile.ts';
import { readIntent, readRecord } from '../../src/machines/runtime/imagePuller/pullRecords.ts';
import { fromCheckpoint } from '../../src/machines/services/probes/carried.ts';
import { decodeVolumeData } from '../../src/machines/services/volumes/csi/data.ts';
import { crc32, fnv1a32 } from '../../src/machines/text/checksum.ts';

const sha = (text: string) => createHash('sha256').update(text).digest('hex');
const opened = (found: { ok: true } | { ok: false; message: string }): string => (found.ok ? 'read' : found.message);
const cpus = (fields: string) => opened(openCpuState(`{"policyName":"none","defaultCPUSet":"1-3",${fields}}`, { place: null, file: 'f' }));
const memory = (policy: string, fields: string) =>
  opened(openMemoryState(`{"policyName":"${policy}",${fields}}`, { place: null, file: 'f' }));
const refused = (why: string) =>
  expect.stringMatching(new RegExp(`^could not restore state from checkpoint: ${why}.*please drain this node and delete the .* "f"`));
const WHOLE = 'pods hold something as a whole \\(gate PodLevelResourceManagers\\)';
const CORRUPT = 'checkpoint is corrupted';

const TEXTS = { policyName: 'none', defaultCpuSet: '1-3', entries: { pod: { c: '4-6' } } };
describe('cpu_manager_state', () => {
  it.each([
    ['1.15, by ids of containers', '"entries":{"containerID1":"4-6","containerID2":"1-3"},"checksum":1', refused(CORRUPT)],
    ['before checksums', '"checksum":0', 'read'],
    ['1.16 to 1.38', `"entries":{"pod":{"c":"4-6"}},"checksum":${cpuStateChecksum(TEXTS)}`, 'read'],
    [
      '1.36 whose gate PodLevelResourceManagers went off',
      `"entries":{"pod":{"c":"4-6"}},"checksum":${cpuStateChecksum(TEXTS, { type: 'CPUManagerCheckpointV2', more: '' })}`,
      'read',
    ],
    [
      '1.36 with that gate, and no pod that uses it',
      `"entries":{"pod":{"c":"4-6"}},"checksum":${cpuStateChecksum(TEXTS, { type: 'CPUManagerCheckpoint', more: ' PodEntries:(state.PodCPUAssignments)map[]' })}`,
      'read',
    ],
    [
      '1.36 with that gate',
      '"entries":{"pod":{"container1":"4-6","container2":"1-3"}},"podEntries":{"pod":{"cpuSet":"4-6"}},"checksum":2649431787',
      refused(WHOLE),
    ],
    [
      'the same, altered',
      '"entries":{"pod":{"container1":"4-6","container2":"1-3"}},"podEntries":{"pod":{"cpuSet":"4-5"}},"checksum":2649431787',
      refused(CORRUPT),
    ],
    ['entries of pods that are none', '"podEntries":[],"checksum":0', refused('a field is of another type')],
  ])('of %s', (_, fields, expected) => {
    expect(cpus(fields)).toEqual(expected);
  });
});

const MACHINE =
  '"machineState":{"0":{"numberOfAssignments":0,"memoryMap":{"memory":{"total":2048,"systemReserved":512,"allocatable":1536,"reserved":512,"free":1024}},"cells":[]}},"entries":{"pod":{"container1":[{"numaAffinity":[0],"type":"memory","size":512}]}}';
const OF_POD = '"podEntries":{"pod":{"memoryBlocks":[{"numaAffinity":[0],"type":"memory","size":512}]}}';
describe('memory_manager_state', () => {
  it.each([
    ['1.30 to 1.38', 'static', `${MACHINE},"checksum":4215593881`, refused('\\[memorymanager\\] configured policy "None" differs')],
    ['1.36 with the gate PodLevelResourceManagers', 'static', `${MACHINE},${OF_POD},"checksum":1278640530`, refused(WHOLE)],
    ['the same, altered', 'static', `${MACHINE},${OF_POD.replace('512', '513')},"checksum":1278640530`, refused(CORRUPT)],
    [
      'blocks that are none',
      'None',
      '"podEntries":{"pod":{"memoryBlocks":[{"size":-1}]}},"checksum":0',
      refused('a field is of another type'),
    ],
  ])('of %s', (_, policy, fields, expected) => {
    expect(memory(policy, fields)).toEqual(expected);
  });
});

describe('dra_manager_state', () => {
  const file = (devices: object) => {
    const claim = { ClaimUID: 'u', ClaimName: 'c', Namespace: 'n', PodUIDs: { p: {} }, DriverState: { d: { Devices: [devices] } } };
    const data = { kind: 'DRACheckpoint', apiVersion: 'checkpoint.dra.kubelet.k8s.io/v1', ClaimInfoStateList: [claim] };
    return JSON.stringify({ Data: JSON.stringify(data), Checksum: crc32(JSON.stringify(data)) });
  };
  it.each([
    ['1.32 and 1.33', { PoolName: 'l', DeviceName: 'd', RequestNames: ['r'], CDIDeviceIDs: ['x'] }, null],
    ['1.34 to 1.38', { PoolName: 'l', DeviceName: 'd', ShareID: 's', RequestNames: ['r'], CDIDeviceIDs: ['x'] }, 's'],
  ])('of %s', (_, device, shareId) => {
    const drivers = new Map([['d', [{ pool: 'l', device: 'd', shareId, requests: ['r'], cdiIds: ['x'] }]]]);
    expect([...decodeClaims(file(device)).values()]).toMatchObject([{ uid: 'u', pods: new Set(['p']), drivers }]);
  });
  it('of 1.26 to 1.31 is told: claims are prepared again', () => {
    const entries = [{ DriverName: 'd', ClaimUID: 'u', ClaimName: 'c', Namespace: 'n', PodUIDs: { p: {} }, CDIDevices: {} }];
    expect(() => decodeClaims(JSON.stringify({ version: 'v1', entries, checksum: 1 }))).toThrow('kubelets before 1.32');
  });
});

describe('kubelet_internal_checkpoint', () => {
  const entry = { PodUID: 'p', ContainerName: 'c', ResourceName: 'r', AllocResp: '' };
  it.each([
    ['1.19, without NUMA nodes', { DeviceIDs: ['a'] }, 1, { '-1': ['a'] }],
    [
      '1.20 to 1.38',
      { DeviceIDs: { '0': ['a'] } },
      checkpointSum({ PodDeviceEntries: [{ ...entry, DeviceIDs: { '0': ['a'] } }], RegisteredDevices: { r: ['a'] } }),
      { '0': ['a'] },
    ],
  ])('of %s', (_, ids, checksum, devices) => {
    const text = JSON.stringify({
      Data: { PodDeviceEntries: [{ ...entry, ...ids }], RegisteredDevices: { r: ['a'] } },
      Checksum: checksum,
    });
    expect(decodeDevices(text)).toMatchObject({ allocations: [{ uid: 'p', container: 'c', devices }], resources: ['r'] });
  });
});

describe('allocated_pods_state', () => {
  const kubelets = (data: object, more = {}) => {
    const text = JSON.stringify(data);
    const read = decodeCheckpoint(ALLOCATED, JSON.stringify({ ...more, data: text, checksum: fnv1a32(`(string)${text}`) }), sha);
    return read.ok ? Object.fromEntries(readPods(read.value)) : read;
  };
  const ContainerResources = { main: { requests: { cpu: '1', 'example.com/x': '1' }, limits: { memory: '1Gi' } } };
  const main = { requests: { cpu: '1' }, limits: { memory: '1Gi' } };
  const whole = { requests: { cpu: '2' }, limits: {} };
  it.each([
    // Statuses of these say the same; pods as a whole could not be resized.
    ['1.32', kubelets({ allocationEntries: { p: { main } } }), {}],
    ['1.33 and 1.34', kubelets({ entries: { p: { ContainerResources } } }), {}],
    ['1.35 and 1.36', kubelets({ entries: { p: { ContainerResources, PodLevelResources: null } } }), { p: { main } }],
    [
      'the same, of a pod as a whole',
      kubelets({ entries: { p: { ContainerResources, PodLevelResources: whole } } }),
      { p: { main, '': whole } },
    ],
    [
      '1.37 and 1.38, with whole pods beside',
      kubelets(
        { podListProto: 'CgA=', entries: { p: { ContainerResources, PodLevelResources: null, EmptyDirVolumeLimits: { v: '1Gi' } } } },
        { version: 'v2' },
      ),
      { p: { main } },
    ],
    ['one altered', decodeCheckpoint(ALLOCATED, '{"data":"{}","checksum":1}', sha), { ok: false, kind: 'corrupt' }],
  ])('of %s', (_, found, expected) => {
    expect(found).toMatchObject(expected);
    if (!('ok' in expected)) expect(found).toEqual(expected);
  });
});

describe('checkpoints of this agent', () => {
  const text = (name: string, value: unknown) => encodeCheckpoint(name, value, sha);
  const value = (name: string, of: string) => {
    const read = decodeCheckpoint(name, of, sha);
    return read.ok ? read.value : read;
  };
  it('allocations, before those of the kubelet were kept', () => {
    const main = { requests: { cpu: '1' }, limits: {} };
    const document = { pods: { p: { main, '': { requests: { cpu: '2' }, limits: {} } }, q: { main: { requests: { cpu: {} } } }, r: 1 } };
    const read = readOlderPods(value(OLDER_ALLOCATIONS, text(OLDER_ALLOCATIONS, document)));
    expect(Object.fromEntries(read)).toEqual({ p: document.pods.p });
  });
  it('probes, of every build', () => {
    const document = { containers: { c1: { uid: 'p', container: 'main', readiness: 'success' }, c2: { uid: 'p' } } };
    expect(Object.fromEntries(fromCheckpoint(value('probes', text('probes', document))))).toEqual({ c1: document.containers.c1 });
  });
  it('of a later format are told', () => {
    expect(value('probes', '{"format":2,"name":"probes"}')).toEqual({
      ...{ ok: false, kind: 'newer', why: 'format 2, this program reads up to 1' },
    });
  });
});

describe('records of pulled images', () => {
  it.each([
    ['1.33 and 1.34', 'v1alpha1'],
    ['1.35 and 1.36', 'v1beta1'],
    ['later ones', 'v1'],
  ])('of %s', (_, version) => {
    const head = { apiVersion: `kubelet.config.k8s.io/${version}` };
    const credentialMapping = { 'docker.io/library/a': { nodePodsAccessible: true } };
    const record = { kind: 'ImagePulledRecord', ...head, lastUpdatedTime: '2026-01-01T00:00:00Z', imageRef: 'sha256:1', credentialMapping };
    expect(readRecord(JSON.stringify(record))).toMatchObject({ imageRef: 'sha256:1', access: credentialMapping });
    expect(readIntent(JSON.stringify({ kind: 'ImagePullIntent', ...head, image: 'a' }))).toBe('a');
  });
  it('of a version that nobody knows grant nothing', () => {
    expect(readIntent('{"kind":"ImagePullIntent","apiVersion":"kubelet.config.k8s.io/v3","image":"a"}')).toBeNull();
  });
});

describe('vol_data.json', () => {
  const volume = { driverName: 'd', volumeHandle: 'h', specVolID: 'v', nodeName: 'n', attachmentID: 'a' };
  it.each([
    ['a volume, 1.30 to 1.38', { ...volume, volumeLifecycleMode: 'Persistent' }, { specName: 'v', attached: true, context: '' }],
    ['one with a label of SELinux, from 1.27 on', { ...volume, seLinuxMountContext: 'c' }, { lifecycle: 'Persistent', context: 'c' }],
    ['of this agent, not attached', { ...volume, 'actorlet.dev/attached': 'false' }, { attached: false }],
  ])('of %s', (_, file, found) => {
    expect(decodeVolumeData(JSON.stringify(file))).toMatchObject({ driver: 'd', handle: 'h', ...found });
  });
});

it('graceful_node_shutdown_state has the times of its zone', () => {
  const told = '{"startTime":"2026-01-01T02:00:00.123456789+02:00","endTime":"0001-01-01T00:00:00Z"}';
  expect(decodeState(told)).toEqual({ startedMs: Date.UTC(2026, 0, 1, 0, 0, 0, 123), endedMs: null });
});
