/** The lookout of a machine ({@link LookDue}): a timer, and one question each time. */
import { fromCallback } from 'xstate';
import { parentOf } from '../../../machines/xstate/inside.ts';
import type { LookDue, LookoutInput } from '../../../machines/xstate/lookout.ts';
import type { Clock } from '../../../ports/ports.ts';

/** `isDue` gets the context of the machine. Where it throws, the machine looks: what is wrong shows in its own step. */
export function lookout<Context = unknown>(clock: Clock, isDue: (context: Context) => boolean) {
  return fromCallback<LookDue, LookoutInput>(({ input, sendBack, self }) => {
    const machine = parentOf(self);
    const due = (): boolean => {
      try {
        return isDue(machine?.getSnapshot().context as Context);
      } catch {
        return true;
      }
    };
    const look = (): void => {
      timer = clock.setTimeout(look, input.everyMs);
      if (due()) sendBack({ type: 'look.due' });
    };
    let timer = clock.setTimeout(look, input.everyMs);
    return () => clock.clearTimeout(timer);
  });
}
