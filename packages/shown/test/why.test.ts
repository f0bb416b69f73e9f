/** `why`: each answer in full, as a person reads it. */

import type { WaitingPod } from '@actorlet/kubelet/machines/pods/admission/messages.ts';
import { describe, expect, it } from 'vitest';
import {
  brokenManifest,
  crashEvents,
  crashRecord,
  criReady,
  inTree,
  NOW,
  pod,
  record,
  running,
  statusView,
  viewOfPods,
  why,
  worker,
} from '../../../test/edge/metrics/samples.ts';
import { LEAVING, REFUSED } from '../../../test/lifeStates.ts';
import { explainPod } from '../src/why/why.ts';
import type { WhyInput } from '../src/why/whySources.ts';

const waits: Omit<WaitingPod, 'pod'> = { source: 'api', sinceMonoMs: 2_000, wait: 'allocating', asked: null, leaving: new Map() };
const asked = { id: 1, pod: pod('gpu'), answer: null, atMonoMs: 3_000, why: '' };
const manifests = new Map([['/etc/kubernetes/manifests/web.yaml', { namespace: 'default', name: 'web-node1' }]]);
/** By the name of its golden file. */
const stories: Record<string, { input: WhyInput; found: boolean }> = {
  'a crashing pod': { input: why('web'), found: true },
  'a pod while the runtime is away': {
    input: why('default/web-node1', { cri: { ...criReady, state: 'lost', reason: 'connect ENOENT /run/containerd/containerd.sock' } }),
    found: true,
  },
  'a pod whose network is not ready': {
    input: why('one', {
      pods: viewOfPods([record(pod('one'))]),
      statuses: statusView({}),
      cri: { ...criReady, networkReady: false, networkReason: 'cni plugin not initialized' },
    }),
    found: true,
  },
  'a healthy pod': {
    input: why('one', { pods: viewOfPods([record(pod('one'))]), statuses: statusView({ 'uid-one': running }) }),
    found: true,
  },
  'admission/a refused pod': {
    input: why('big', {
      pods: viewOfPods([record(pod('big'), { state: REFUSED, worker: null })]),
      statuses: statusView({ 'uid-big': { phase: 'Failed', reason: 'OutOfcpu', message: 'Pod was rejected: needs 8 cpu, 2 are free' } }),
    }),
    found: true,
  },
  'admission/a pod that waits for devices': {
    input: why('gpu', {
      pods: viewOfPods([record(pod('one'))]),
      waiting: new Map([
        ['uid-gpu', { ...waits, pod: pod('gpu'), asked: { ...asked, why: 'device manager: node/allocation/devices is restarting' } }],
      ]),
    }),
    found: true,
  },
  'admission/a pod that waits for room': {
    input: why('uid-big', {
      pods: viewOfPods([record(pod('one'))]),
      waiting: new Map([['uid-big', { ...waits, pod: pod('big'), wait: 'room', leaving: new Map([['uid-one', 1_000]]) }]]),
    }),
    found: true,
  },
  'admission/a changed pod that waits to be let in again': {
    input: why('one', {
      pods: viewOfPods([record(pod('one'))]),
      waiting: new Map([['uid-one', { ...waits, pod: pod('one'), wait: 'later' }]]),
    }),
    found: true,
  },
  'a pod whose worker is quarantined': {
    input: why('uid-web-node1', {
      actorAt: inTree({
        'node/pods/workers/uid-web': {
          path: 'node/pods/workers/uid-web-node1',
          lifecycle: 'quarantined',
          restarts: 3,
          lastError: 'TypeError: x is undefined',
        },
      }),
    }),
    found: true,
  },
  'manifests/a pod being stopped since its manifest broke': {
    input: why('db', {
      pods: viewOfPods([
        record(pod('db-node1'), {
          state: LEAVING,
          worker: worker({
            phase: 'terminating',
            state: 'terminating.stopping',
            reason: 'Stopping',
            message: 'SIGTERM sent, 30 s of grace',
            causes: [
              {
                atMs: NOW - 3000,
                by: 'node/pods/sources/file',
                what: 'manifest /etc/kubernetes/manifests/db.yaml cannot be parsed any more',
              },
            ],
          }),
        }),
      ]),
      statuses: statusView({ 'uid-db-node1': running }),
      sourceErrors: brokenManifest,
    }),
    found: true,
  },
  'manifests/a pod that went since its manifest broke': { input: why('db', { sourceErrors: brokenManifest }), found: true },
  'manifests/a manifest by its file name': { input: why('db.yaml', { sourceErrors: brokenManifest }), found: true },
  'manifests/a manifest whose pod runs': { input: why('web.yaml', { manifests }), found: true },
  'manifests/a manifest by its relative path': { input: why('./manifests/web.yaml', { manifests }), found: true },
  'a pod that is older than the daemon': { input: why('web', { startedAtMs: NOW - 5_000 }), found: true },
  'a pod that is gone': { input: why('default/web-node1', { pods: viewOfPods([]) }), found: true },
  'an unknown name': { input: why('nosuch', { sourceErrors: brokenManifest, pods: viewOfPods([crashRecord], false) }), found: false },
  'an ambiguous name': {
    input: why('web', { pods: viewOfPods([record(pod('web', { uid: 'u1' })), record(pod('web', { uid: 'u2', namespace: 'shop' }))]) }),
    found: false,
  },
  'a node that has just begun': {
    input: why('web', {
      pods: undefined,
      events: undefined,
      cri: { ...criReady, state: 'connecting', reason: 'connect ECONNREFUSED' },
      actorAt: inTree({ 'node/pods/podManager': { lifecycle: 'restarting', lastError: 'boom' } }),
    }),
    found: false,
  },
};

describe('why', () => {
  it.each(Object.entries(stories))('explains %s', async (name, { input, found }) => {
    const said = explainPod(input);
    expect(said.found).toBe(found);
    await expect(`${said.lines.join('\n')}\n`).toMatchFileSnapshot(`golden/why/${name.replaceAll(' ', '-')}.txt`);
  });
  it('prefers the pod that is wanted over its predecessor of the same name', () => {
    const old = record(pod('web', { uid: 'old' }), { state: LEAVING });
    const said = explainPod(why('web', { pods: viewOfPods([old, record(pod('web', { uid: 'new' }))]) }));
    expect(said.lines[0]).toBe('Pod default/web  uid new');
  });
  it('cannot be made to move the cursor by what a container wrote', () => {
    const events = crashEvents.map((e) => ({ ...e, message: 'a\u001b[2Jb\nc' }));
    const said = explainPod(why('web', { events }));
    expect(said.lines.join('|')).toContain('a\\x1b[2Jb\\nc');
  });
});
