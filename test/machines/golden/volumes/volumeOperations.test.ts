/**
 * Operations on one volume (resources and volumes 8.6), states that nobody is sure of (8.7), and what an earlier daemon left
 * (8.9): what is done when, what its phase is for whoever waits, and what the user is told. A row is a story told step by step.
 */
import { createActor, setup } from 'xstate';
import { type VolumeIo, volumeEffects } from '../../../../src/actors/services/volumes/logic.ts';
import { volumeRef } from '../../../../src/machines/pod/volumes/volumePaths.ts';
import type { PodVolume } from '../../../../src/machines/pod/volumes/volumes.ts';
import { NOT_ATTACHED, NOT_REPORTED } from '../../../../src/machines/services/volumes/csi/volume.ts';
import { isMounted } from '../../../../src/machines/services/volumes/reconcile.ts';
import { mountFailure, setUpSuccess } from '../../../../src/machines/services/volumes/said.ts';
import { type SetUpDone, type VolumePhase, volumeMachine } from '../../../../src/machines/services/volumes/volumeMachine.ts';
import { provided } from '../../../../src/machines/xstate/provide.ts';
import { virtualTime } from '../../../integration/virtualTime.ts';
import { pod } from '../../pods/fixtures.ts';
import { goldenTable } from '../table.ts';

const FILES: PodVolume = {
  ...volumeRef('uid-1', 'kubernetes.io~secret', 'v'),
  source: { kind: 'files', memory: true, defaultMode: 0o644, sources: [] },
};
const HOST_PATH: PodVolume = { ...FILES, plugin: 'kubernetes.io~host-path', source: { kind: 'hostPath', path: '/srv', type: '' } };
const claim = (block: boolean): PodVolume => ({
  ...FILES,
  plugin: 'kubernetes.io~csi',
  source: { kind: 'claim', claim: 'data', readOnly: false, block },
});
const DEVICE: SetUpDone = {
  at: '/var/lib/kubelet/pods/uid-1/volumeDevices/kubernetes.io~csi/v',
  readOnly: false,
  device: true,
  republish: false,
};
const REPUBLISHED: SetUpDone = { ...DEVICE, device: false, republish: true };

type Step = 'want' | 'want, changed' | 'unwant' | 'refresh' | 'changed' | 'retry' | 'let go' | { wait: number };
const wait = (ms: number): Step => ({ wait: ms });
/** `held`: under way until it is let go, and then well; `held, bad`: fails then. */
type Outcome = 'ok' | 'bad' | 'held' | 'held, bad';

interface Start {
  /** Left on disk by an earlier daemon. */
  found?: boolean;
  volume?: PodVolume;
  done?: SetUpDone;
  outcomes?: readonly Outcome[];
}
const story =
  (o: Start, ...steps: Step[]) =>
  async () => {
    const time = virtualTime();
    const beganMs = time.clock.monoMs();
    const volume = o.volume ?? FILES;
    const out: string[] = [];
    const say = (what: string) => void out.push(`${(time.clock.monoMs() - beganMs) / 1_000} s: ${what}`);
    const outcomes = [...(o.outcomes ?? [])];
    const held: (() => void)[] = [];
    const operate = async (op: string): Promise<void> => {
      say(op);
      const outcome = outcomes.shift() ?? 'ok';
      if (outcome.startsWith('held')) await new Promise<void>((go) => held.push(go));
      if (outcome.endsWith('bad')) throw new Error('not possible');
    };
    const io: VolumeIo = {
      setUp: async ({ first }) => {
        await operate(first ? 'set up' : 'set up again');
        return o.done ?? null;
      },
      tearDown: () => operate('taken down'),
      mountFailed: (_, its, message) => say(`event ${mountFailure(its, message)?.reason}`),
      grow: async () => ({ kind: 'looked', fixed: false }),
      growthFailed: () => undefined,
      tearDownFailed: () => say('logged, no event'),
    };
    let last: VolumePhase | undefined;
    const POD = pod();
    const parent = setup({
      actors: { volume: provided(volumeMachine, volumeEffects(io), () => ({ wallMs: 0, monoMs: 0, random: 0 })) },
    }).createMachine({
      invoke: {
        id: 'volume',
        src: 'volume',
        input: { ref: volume, job: o.found === true ? null : { volume, pod: POD } },
      },
      on: {
        'volume.changed': {
          actions: ({ event }) => {
            last = (event as unknown as { phase: VolumePhase }).phase;
            say(`-> ${last}${isMounted(last) ? ', counts as mounted' : ''}`);
          },
        },
      },
    });
    const root = createActor(parent, {
      clock: time.clock,
    });
    root.start();
    await time.advance(0);
    const actor = () => root.getSnapshot().children.volume;
    for (const step of steps) {
      if (typeof step === 'object') await time.advance(step.wait);
      else if (step === 'let go') held.shift()?.();
      else if (step === 'unwant') actor()?.send({ type: 'volume.unwant' });
      else if (step === 'retry') actor()?.send({ type: 'volume.retry' });
      else if (step === 'want') actor()?.send({ type: 'volume.want', volume, pod: POD });
      else if (step === 'want, changed') actor()?.send({ type: 'volume.want', volume, pod: pod() });
      else actor()?.send({ type: 'volume.refresh', volume, pod: POD, ...(step === 'changed' ? { changed: true } : {}) });
      await time.advance(0);
    }
    root.stop();
    return out;
  };
const bad = (count: number): Outcome[] => Array.from({ length: count }, () => 'bad' as const);

goldenTable('operations on a volume are as recorded', 'volumes/volumeOperations', {
  '8.6 event: a mount failed': () => mountFailure(FILES, 'secret "ns/s" not found'),
  '8.6 event: a claim’s mount failed': () => mountFailure(claim(false), 'rpc error: no room'),
  '8.6 event: a device failed': () => mountFailure(claim(true), 'rpc error: no room'),
  '8.6 event: not told as in use yet, which is a wait': () => mountFailure(claim(false), NOT_REPORTED),
  '8.6 event: not attached yet, which is a wait': () => mountFailure(claim(false), NOT_ATTACHED),
  '8.6 event: a device is there': () => setUpSuccess(claim(true), DEVICE),
  '8.6 event: none of a volume of files': () => [setUpSuccess(FILES, null), setUpSuccess(claim(false), { ...DEVICE, device: false })],

  '8.6 back-off: the same operation waits longer each time': story({ outcomes: bad(4) }, wait(4_000)),
  '8.6 back-off: two minutes and two seconds at most': story({ outcomes: bad(11) }, wait(500_000)),
  '8.6 back-off: another operation begins at once (trap 46)': story({ outcomes: bad(3) }, wait(2_000), 'unwant'),
  '8.6 back-off: and wanted again, too': story({ outcomes: ['ok', 'bad'] }, 'unwant', 'want'),
  '8.6 back-off: of a taking down': story({ outcomes: ['ok', 'bad', 'bad'] }, 'unwant', wait(2_000)),
  '8.6 back-off: over when what was missing may be there': story({ outcomes: bad(3) }, wait(2_000), 'retry'),
  '8.6 back-off: over when the definition changed': story({ outcomes: bad(3) }, wait(2_000), 'changed'),
  '8.6 pending: nothing else begins meanwhile': story({ outcomes: ['held'] }, 'want', 'refresh', wait(60_000), 'let go'),
  '8.6 pending: released meanwhile': story({ outcomes: ['held'] }, 'unwant', 'let go'),
  '8.6 pending: released meanwhile, and it failed': story({ outcomes: ['held, bad'] }, 'unwant', 'let go'),
  '8.6 pending: wanted again while it is taken down': story({ outcomes: ['ok', 'held'] }, 'unwant', 'want', 'let go'),
  '8.6 pending: wanted again, and the taking down failed': story({ outcomes: ['ok', 'held, bad'] }, 'unwant', 'want', 'let go'),
  '8.6 success: compared with its sources when asked': story({}, 'refresh'),
  '8.6 success: asked by a pod that changed': story({}, 'want, changed'),
  '8.6 success: a host path is never compared': story({ volume: HOST_PATH }, 'refresh', 'want, changed'),
  '8.6 success: a driver that wants it again': story({ volume: claim(false), done: REPUBLISHED }, 'refresh'),

  '8.7 mounted: a failed refresh leaves it mounted': story({ outcomes: ['ok', 'bad'] }, 'refresh', wait(1_000)),
  '8.7 mounted: released after a failed refresh': story({ outcomes: ['ok', 'bad'] }, 'refresh', 'unwant'),
  '8.7 uncertain: a set-up that failed does not count, and is tried again': story({ outcomes: ['bad'] }, wait(500)),
  '8.7 uncertain: a set-up that failed is taken down with its pod (trap 47)': story({ outcomes: ['bad'] }, 'unwant'),
  '8.7 uncertain: a taking down that failed does not count as mounted': story({ outcomes: ['ok', 'bad'] }, 'unwant', wait(500)),

  '8.9 found: waits to be told': story({ found: true }, wait(3_600_000)),
  '8.9 found: wanted, set up again': story({ found: true }, 'want'),
  '8.9 found: wanted, and that fails': story({ found: true, outcomes: ['bad'] }, 'want', wait(500)),
  '8.9 found: nobody wants it': story({ found: true }, 'unwant'),
  '8.9 found: nobody wants it, and it cannot be taken down': story({ found: true, outcomes: ['bad'] }, 'unwant', wait(500)),
  '8.9 found: a refresh says nothing about it': story({ found: true }, 'refresh', 'retry'),
});
