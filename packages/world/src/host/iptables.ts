/** The packet filter of a simulated machine: it outlives daemons, and other programs flush it. */
import type { IpFamily } from '@actorlet/kubelet/machines/services/iptables/families.ts';
import { KILLED, LOCK_HELD } from '@actorlet/kubelet/machines/services/iptables/rules.ts';
import type { Iptables, IptablesResult } from '@actorlet/kubelet/ports/machine/iptables.ts';
import type { Clock } from '@actorlet/kubelet/ports/ports.ts';

const RUN_MS = 4;
/** As the program's: built-in chains are never flushed away. */
const BUILT_IN = ['INPUT', 'OUTPUT', 'FORWARD', 'PREROUTING', 'POSTROUTING'];
const LOCKED: IptablesResult = { code: LOCK_HELD, words: 'Another app is currently holding the xtables lock.' };
/** The program waits so long for the lock, and its caller so long for the program. */
const LOCK_WAIT_MS = 5_000;
const HANG_MS = 10_000;
const HUNG: IptablesResult = { code: KILLED, words: 'did not end within 10 s and was killed' };
const BROKEN: IptablesResult = { code: 3, words: "can't initialize iptables table: Memory allocation problem" };

/** What becomes of one command. `locked`: another program holds the lock of the tables. */
type IptablesVerdict = 'pass' | 'error' | 'hang' | 'locked';

const TROUBLES = {
  error: { afterMs: RUN_MS, result: BROKEN },
  hang: { afterMs: HANG_MS, result: HUNG },
  locked: { afterMs: LOCK_WAIT_MS, result: LOCKED },
} as const;

export interface SimIptables {
  /** Families that the machine has. */
  families: Set<IpFamily>;
  /** Commands with this word are refused, as when another program holds the lock of the tables. '': none. */
  refused: string;
  /** Runs do not end before it is false again. */
  stuck: boolean;
  trouble: () => IptablesVerdict;
  /** Commands so far. */
  readonly runs: readonly string[];
  /** Rules of a chain in order; null: the chain is not there. */
  rules(family: IpFamily, table: string, chain: string): readonly string[] | null;
  /** Another program removes all chains and rules of a family, or of one of its tables. */
  flush(family: IpFamily, table?: string): void;
  connect(o: { clock: Clock; power: { on: boolean } }): Iptables;
}

export function simIptables(): SimIptables {
  const chains = new Map<string, string[]>();
  const runs: string[] = [];
  const waiting: (() => void)[] = [];
  let stuck = false;
  const key = (...parts: (string | number)[]): string => parts.join(' ');
  const find = (at: string): string[] | undefined => {
    const known = chains.get(at);
    if (known !== undefined || !BUILT_IN.includes(at.split(' ')[2] ?? '')) return known;
    chains.set(at, []);
    return chains.get(at);
  };
  const ok: IptablesResult = { code: 0, words: '' };
  const no = (words: string): IptablesResult => ({ code: 1, words });

  function act(family: IpFamily, args: readonly string[]): IptablesResult {
    const [, , command, chain = '', , table = '', ...rule] = args;
    const at = key(family, table, chain);
    const there = find(at);
    if (command === '-N') {
      if (there !== undefined) return no('Chain already exists.');
      chains.set(at, []);
      return ok;
    }
    if (there === undefined) return no('No chain/target/match by that name.');
    const text = rule.join(' ');
    if (command === '-C') return there.includes(text) ? ok : no('Bad rule (does a matching rule exist in that chain?).');
    if (command === '-I') there.unshift(text);
    if (command === '-A') there.push(text);
    return ok;
  }

  const world: SimIptables = {
    families: new Set([4, 6]),
    refused: '',
    trouble: () => 'pass',
    get stuck() {
      return stuck;
    },
    set stuck(now) {
      stuck = now;
      if (!now) for (const run of waiting.splice(0)) run();
    },
    runs,
    rules: (family, table, chain) => find(key(family, table, chain)) ?? null,
    flush(family, table = '') {
      for (const at of [...chains.keys()]) if (at.startsWith(key(family, table))) chains.delete(at);
    },
    connect: ({ clock, power }) => ({
      run: (family, args, signal) =>
        new Promise((resolve, reject) => {
          signal.addEventListener('abort', () => reject(new Error('was killed')), { once: true });
          const run = (): void => {
            if (!power.on || signal.aborted) return;
            runs.push(key(family, ...args));
            if (!world.families.has(family)) reject(new Error('iptables cannot be run: ENOENT'));
            else resolve(world.refused !== '' && args.includes(world.refused) ? LOCKED : act(family, args));
          };
          if (stuck) {
            waiting.push(run);
            return;
          }
          const verdict = world.trouble();
          if (verdict === 'pass') return void clock.setTimeout(run, RUN_MS);
          const { afterMs, result } = TROUBLES[verdict];
          clock.setTimeout(() => {
            runs.push(key(family, ...args));
            resolve(result);
          }, afterMs);
        }),
    }),
  };
  return world;
}
