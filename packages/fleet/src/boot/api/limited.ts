/** Conditions of a fleet file are run for no longer than so much time, whatever loops they have and whatever objects they meet. */
import { createContext, Script } from 'node:vm';

const LIMIT_MS = 2_000;

const context = createContext({ act: undefined });
const script = new Script('act()');

/** @throws Error where it takes longer: the thread is interrupted then. */
export function limited<T>(act: () => T, limitMs = LIMIT_MS): T {
  context.act = act;
  try {
    return script.runInContext(context, { timeout: limitMs }) as T;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ERR_SCRIPT_EXECUTION_TIMEOUT') throw error;
    throw new Error(`it was ended after ${limitMs / 1_000} s`, { cause: error });
  } finally {
    context.act = undefined;
  }
}
