/** What an exec is asked with, and its streams. */
import type { CtlIo } from '../io.ts';

export interface ExecFlags {
  stdin: boolean;
  tty: boolean;
}

export type ExecIo = Pick<CtlIo, 'stdin' | 'outBytes' | 'errBytes' | 'signal' | 'terminal'>;
