/** The names that the worker's statechart uses. Each region has its own; actions are total. */

import { assign } from 'xstate';
import type { Trouble } from './context.ts';
import { actActions, actDelays, actGuards, withTrouble } from './regions/act.ts';
import { declared } from './regions/declared.ts';
import { endActions, endDelays, endGuards } from './regions/end.ts';
import { lookActions, lookDelays, lookGuards } from './regions/look.ts';
import { decideActions, planGuards, statusAtEnd } from './regions/plan.ts';
import { resizeActions } from './regions/resize.ts';
import { restartActions } from './regions/restart.ts';
import { startActions, startGuards } from './regions/starts.ts';

export const workerSetup = declared.extend({
  actions: {
    ...endActions,
    ...lookActions,
    ...decideActions,
    ...actActions,
    ...startActions,
    ...restartActions,
    ...resizeActions,
    trouble: assign(({ context }, trouble: Trouble) => withTrouble(context, trouble)),
    terminalStatus: assign(({ context }, { podIsTerminal }: { podIsTerminal: boolean }) => statusAtEnd(context, podIsTerminal)),
  },
  guards: { ...endGuards, ...lookGuards, ...planGuards, ...actGuards, ...startGuards },
  delays: { ...lookDelays, ...actDelays, ...endDelays },
});
