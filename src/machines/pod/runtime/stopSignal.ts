/** Names of stop signals: as the API writes them and as CRI does. Pure. */
const PLAIN: readonly string[] = (
  'ABRT ALRM BUS CHLD CLD CONT FPE HUP ILL INT IO IOT KILL PIPE POLL PROF PWR QUIT SEGV STKFLT STOP SYS TERM TRAP TSTP TTIN TTOU ' +
  'URG USR1 USR2 VTALRM WINCH XCPU XFSZ RTMIN RTMAX'
)
  .split(' ')
  .map((name) => `SIG${name}`);
const numbered = (prefix: string, count: number): string[] => Array.from({ length: count }, (_, i) => `${prefix}${i + 1}`);

/** What `lifecycle.stopSignal` may be on Linux. */
export const STOP_SIGNALS: readonly string[] = [...PLAIN, ...numbered('SIGRTMIN+', 15), ...numbered('SIGRTMAX-', 14)];

/** CRI's enumeration has no signs in its names. */
export function criSignal(signal: string): string {
  return signal.replace('+', 'PLUS').replace('-', 'MINUS');
}

/** The API's word for a runtime's signal. Null: the runtime names none, or one that the API has no word for. */
export function apiSignal(signal: string | undefined): string | null {
  const name = signal?.replace('PLUS', '+').replace('MINUS', '-') ?? '';
  return STOP_SIGNALS.includes(name) ? name : null;
}
