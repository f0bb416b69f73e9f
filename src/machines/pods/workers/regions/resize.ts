/** Granted resources that are not in force are changed in place, by a child; nobody is asked for them before there are some. */

import { withStep } from '../../../pod/resources/actuation.ts';
import { amountsOf, asksForNothing, WHOLE_POD } from '../../../pod/resources/amounts.ts';
import { resizeInProgress, resizeMessage } from '../../../pod/resources/resizeEvents.ts';
import { declared } from './declared.ts';

/** Id of the child. */
export const RESIZER = 'resize';

export const resizeActions = {
  feedResize: declared.enqueueActions(({ context, enqueue }) => {
    const { decision, pod, resize } = context;
    if (decision === null || decision.plan.kind !== 'steady') return;
    const { steps } = decision.resize;
    const input = { pod, steps, sandboxId: context.status?.sandboxes[0]?.id ?? '' };
    if (resize.child) enqueue.sendTo(RESIZER, { type: 'resize.wanted', ...input });
    else if (steps.length > 0) {
      enqueue.spawnChild('resize', { id: RESIZER, input });
      enqueue.assign({ resize: { ...resize, child: true } });
    }
  }),
  /** The cgroup of the pod is made with what was granted by now. */
  noteWhole: declared.assign(({ context: { pod, resize } }) => {
    const whole = amountsOf(pod.spec);
    return asksForNothing(whole) ? {} : { resize: { ...resize, inForce: new Map([...resize.inForce, [WHOLE_POD, whole]]) } };
  }),
  noteResized: declared.assign(({ context: { resize, status }, event }) => {
    if (event.type !== 'resize.set') return {};
    const { step } = event;
    const from = status?.containers.find((c) => c.id === step.containerId);
    const gone = from === undefined && step.containerId !== WHOLE_POD;
    return { resize: { ...resize, error: null, ...(gone ? {} : { inForce: withStep(resize.inForce, step, from) }) } };
  }),
  noteResizeTrouble: declared.enqueueActions(({ context, event, enqueue }) => {
    if (event.type !== 'resize.trouble') return;
    const { message } = event;
    const { resize, pod } = context;
    enqueue.assign({ resize: { ...resize, error: message } });
    if (message === null || message === resize.error) return;
    const generation = resizeInProgress(context.apiStatus ?? {})?.observedGeneration;
    const told = resizeMessage('error', pod, { generation, error: message });
    enqueue({ type: 'recordEvent', params: { type: 'Warning', reason: 'ResizeError', message: told } });
  }),
};
