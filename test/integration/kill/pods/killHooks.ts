/** For every state of a hook and of a stop: how a node is driven there. */
import { dottedState } from '../../../../src/machines/xstate/words.ts';
import { pod, type VirtualNode, type VirtualNodeOptions } from '../../virtualNode.ts';
import type { KillCase } from '../killing.ts';

interface Ref {
  getSnapshot(): { machine?: { id: string }; value?: unknown; children?: Record<string, Ref | undefined> };
}

const worker = (h: VirtualNode) => h.workerPath('subject');
/** States of all charts of that name below the subject's worker. */
function inside(h: VirtualNode, machine: string): string[] {
  const record = h.record('subject');
  const root = record === undefined ? undefined : h.tree.actorAt(`node/pods/workers/${record.pod.metadata.uid}`);
  const walk = (ref: Ref): string[] => {
    const { machine: own, value, children = {} } = ref.getSnapshot();
    const here = own?.id === machine ? [dottedState(value)] : [];
    return [...here, ...Object.values(children).flatMap((child) => (child === undefined ? [] : walk(child)))];
  };
  return root === undefined ? [] : walk(root as unknown as Ref);
}
const runs = (h: VirtualNode) => h.running('subject').length === 1 && h.phase('subject') === 'Running';
const gone = (h: VirtualNode) => h.containers('subject').length === 0 && h.record('subject') === undefined;
const command = (...args: string[]) => ({ exec: { command: ['hook', ...args] } });
/** Commands take as many ms as their first word says, and fail in the first instance where the second one is `first`. */
const options: VirtualNodeOptions = {
  hollow: {
    exec: ({ attempt }, [name, delayMs, fails]) =>
      name === 'hook' ? { delayMs: Number(delayMs), exitCode: fails === 'first' && attempt === 0 ? 1 : 0 } : undefined,
  },
};

function starting(covers: string, lifecycle: object, more: Partial<KillCase> & { life?: string } = {}): KillCase {
  const { life, ...rest } = more;
  const [machine = '', state = ''] = covers.split(' ');
  return {
    covers,
    path: worker,
    options,
    arrange: async (h) => {
      h.write('subject', pod('subject', { container: { lifecycle }, ...(life === undefined ? {} : { life }) }));
      await h.until('the pod is known', () => h.record('subject'));
    },
    at: (h) => inside(h, machine).includes(state),
    rests: runs,
    restsWithinMs: 120_000,
    ...rest,
  };
}
function ending(covers: string, subject: object, hold: (h: VirtualNode) => void = () => {}): KillCase {
  const [machine = '', state = ''] = covers.split(' ');
  return {
    covers,
    path: worker,
    options,
    arrange: async (h) => {
      await h.run('subject', subject);
      await h.advance(2_000);
      hold(h);
      h.remove('subject');
    },
    at: (h) => inside(h, machine).includes(state),
    rests: gone,
    restsWithinMs: 120_000,
  };
}
const stopping = (lifecycle: object) => pod('subject', { container: { lifecycle } });

export const HOOK_CASES: KillCase[] = [
  starting('hook sleeping', { postStart: { sleep: { seconds: 3 } } }),
  starting('hook asking.running', { postStart: command('3000') }),
  starting(
    'hook asking.away',
    { postStart: command('3000') },
    {
      arrange: async (h) => {
        h.write('subject', pod('subject', { container: { lifecycle: { postStart: command('3000') } } }));
        await h.until('the hook runs', () => inside(h, 'hook').includes('asking.running'));
        h.kill('node/runtime/cri');
      },
    },
  ),
  starting('container hooking', { postStart: command('3000') }),
  // The stop that is under way has its effect although its asker is gone.
  starting('container stoppingFailed', { postStart: command('100', 'first') }, { life: 'term=4s', at: (h) => isStopping(h) }),
  ending('containerStop hooking', stopping({ preStop: command('3000') })),
  ending(
    'containerStop waiting',
    pod('subject', { inits: [{ restartPolicy: 'Always' }], lives: { main: 'term=4s' }, spec: { terminationGracePeriodSeconds: 30 } }),
  ),
  ending('containerStop stopping', pod('subject', { life: 'term=4s' })),
  ending('stop containers', pod('subject', { life: 'term=4s' })),
  ending('stop sandboxes', pod('subject'), (h) => {
    h.faults.latencyMs.StopPodSandbox = 1_000;
  }),
];

/** The runtime has been asked to stop it. */
function isStopping(h: VirtualNode): boolean {
  return h.containerState('subject', 'main') === 'stoppingFailed' && h.calls.some((c) => c.method === 'StopContainer');
}
