/** Signal names of the CRI enum to numbers of this host. */
import { constants } from 'node:os';
import { CODE, RuntimeRefusal } from '../../shared/model.ts';

const RTMIN = 34;
const RTMAX = 64;

/** Absent, empty or RUNTIME_DEFAULT is TERM. Throws for a name this host does not know. */
export function signalNumber(name: string | undefined): number {
  if (!name || name === 'RUNTIME_DEFAULT') return constants.signals.SIGTERM;
  const rt = /^SIGRT(MIN|MAX)(?:(?:PLUS|MINUS)(\d+))?$/.exec(name);
  if (rt !== null) return rt[1] === 'MIN' ? RTMIN + Number(rt[2] ?? 0) : RTMAX - Number(rt[2] ?? 0);
  const alias = name === 'SIGCLD' ? 'SIGCHLD' : name;
  const known: Readonly<Record<string, number>> = constants.signals;
  const number = known[alias];
  if (number === undefined) throw new RuntimeRefusal(CODE.invalidArgument, `unknown stop signal ${name}`);
  return number;
}
