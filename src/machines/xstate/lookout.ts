/**
 * A machine that looks at views from time to time invokes a lookout: it hears of a look only where there is something to do. A look
 * without need is no step: most nodes are at rest most of the time, and a step costs fifty times as much as the question.
 */
import { unprovidedCallback } from './provide.ts';

export interface LookoutInput {
  /** Between two looks. */
  everyMs: number;
}
/** There is something to do. */
export type LookDue = { type: 'look.due' };

export const unprovidedLookout = () => unprovidedCallback<LookDue, LookoutInput>();
