/** The pod manager, killed while a pod's life is in each state of its machine. */
import { type PodLifeState, podsView } from '../../../src/machines/pods/manager/messages.ts';
import { pod, type VirtualNode } from '../virtualNode.ts';
import type { KillCase } from './killing.ts';

const PINNED = { uid: 'pinned-subject', life: 'term=5s' };
const UNKNOWN = { ...PINNED, spec: { volumes: [{ name: 'v', quobyte: { registry: 's', volume: 'x' } }] } };

const failed = (h: VirtualNode) => h.phase('subject') === 'Failed' && h.running('subject').length === 0;

async function up(h: VirtualNode, subject: object): Promise<void> {
  h.write('subject', subject);
  await h.until('the subject runs', () => runs(h));
}
const runs = (h: VirtualNode) => h.running('subject').length === 1 && h.phase('subject') === 'Running';
const replaced = (h: VirtualNode) => runs(h) && h.record('subject')?.pod.spec.containers[0]?.image === 'other:1';

/** States of the subject's lives: two pods can have its name. */
function livesOf(h: VirtualNode): PodLifeState[] {
  const records = [...(h.tree.registry.read(podsView)?.value.records.values() ?? [])];
  return records.filter((r) => r.pod.metadata.name === 'subject-n1').map((r) => r.state.is);
}

function of(state: 'idle' | 'working', is: PodLifeState, more: Pick<KillCase, 'arrange' | 'rests'>): KillCase {
  return {
    covers: `podLife ${state}.${is}`,
    path: 'node/pods/podManager',
    at: (h) => livesOf(h).includes(is),
    ...more,
  };
}

export const LIFE_CASES: KillCase[] = [
  of('idle', 'waiting', {
    arrange: async (h) => {
      await up(h, pod('subject', { life: 'term=5s' }));
      h.write('subject', pod('subject', { container: { image: 'other:1' } }));
    },
    rests: replaced,
  }),
  of('idle', 'refused', { arrange: async (h) => h.write('subject', pod('subject', UNKNOWN)), rests: failed }),
  of('working', 'running', {
    arrange: async (h) => h.write('subject', pod('subject')),
    rests: runs,
  }),
  of('working', 'leaving', {
    arrange: async (h) => {
      await up(h, pod('subject', PINNED));
      h.remove('subject');
    },
    rests: (h) => h.containers('subject').length === 0 && h.record('subject') === undefined,
  }),
  of('idle', 'ended', {
    arrange: async (h) => h.write('subject', pod('subject', { life: 'run=1s', spec: { restartPolicy: 'Never' } })),
    rests: (h) => h.phase('subject') === 'Succeeded',
  }),
];

/**
 * Not in the kill table: a new pod manager refuses the pod as one that never ran, so its status keeps phase, reason and message,
 * and loses its conditions and containers.
 */
export const FAILING = of('working', 'failing', {
  arrange: async (h) => {
    await up(h, pod('subject', PINNED));
    h.write('subject', pod('subject', UNKNOWN));
  },
  rests: failed,
});
