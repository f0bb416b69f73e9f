/** Restarts that a person asks for: what is answered, and which instances they are about. */

import { askedBefore, type RestartAnswer, replacedAsAsked, restartOf, withAsked } from '../../../pod/restart/asked.ts';
import { joinCauses } from '../../../supervision/address.ts';
import type { Restarting, WorkerContext, WorkerInput } from '../context.ts';
import type { WorkerEvent } from '../messages.ts';
import { REPLACED_MAX } from './act.ts';
import { declared } from './declared.ts';

/** A restart is refused while the pod ends, and before the runtime was asked what it holds of it. */
export const ENDING = { later: false, why: 'it is being stopped: its containers end, and do not start again' } as const;
export const NOT_SEEN_YET = { later: true, why: 'what runs of it is not known yet; ask again' } as const;

interface Refused {
  readonly later: boolean;
  readonly why: string;
}
/** Answers that nothing is restarted. */
export const refusing = (said: Refused | ((context: WorkerContext) => Refused)) =>
  ({
    type: 'answer',
    params: ({ context, event: { replyTo } }: { context: WorkerContext; event: Extract<WorkerEvent, { type: 'pod.restart' }> }) => {
      const answer: RestartAnswer = { ok: false, ...(typeof said === 'function' ? said(context) : said) };
      return { replyTo, answer };
    },
  }) as const;

function answerTo({ pod, life, status }: WorkerContext, asked: { container: string; life: number }): RestartAnswer {
  if (life !== undefined && asked.life !== life) return { ok: false, later: true, why: 'its UID has begun another life; ask again' };
  if (status === null) return { ok: false, ...NOT_SEEN_YET };
  return restartOf({ pod, status, container: asked.container });
}

/** Of a worker that goes on with what an earlier one was asked for. */
export function restartsBefore(told: WorkerInput['asked']): Restarting {
  return { asked: askedBefore(told), times: new Map() };
}

export const restartActions = {
  /** What is asked for is about the instances that there are now, and answered at once. */
  takeRestart: declared.enqueueActions(({ context, event, enqueue }) => {
    if (event.type !== 'pod.restart') return;
    const { act, look, restart } = context;
    const { over, replyTo, causes } = event;
    const answer = answerTo(context, event);
    enqueue({ type: 'answer', params: { replyTo, answer } });
    if (!answer.ok) return;
    const asked = withAsked(restart.asked, answer.containers, over);
    const times = answer.containers.map(({ name }) => [name, (restart.times.get(name) ?? 0) + 1] as const);
    enqueue.assign({
      restart: { asked, times: new Map([...restart.times, ...times]) },
      act: {
        ...{ ...act, replaced: replacedAsAsked(act.replaced, asked, REPLACED_MAX) },
        // Nobody who asked waits for what came of acts before.
        ...{ pace: { ...act.pace, inRow: 0 }, failuresInRow: 0 },
      },
      look: { ...look, hint: 'yes' },
      causes: joinCauses(context.causes, causes),
    });
    enqueue({ type: 'report' });
  }),
};
