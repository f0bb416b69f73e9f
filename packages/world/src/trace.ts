/** What a run did, as lines and as one number: equal seeds give equal numbers. No host name, path, locale or wall time is in it. */
import type { SupervisionEvent } from '@actorlet/kubelet/actors/supervision/types.ts';

export interface Trace {
  add(atMs: number, who: string, what: string): void;
  /** 16 hex digits over every line so far. */
  hash(): string;
  readonly lines: number;
  /** The newest lines, oldest first. */
  tail(count: number): string[];
}

export function createTrace(keepMax = 2_000): Trace {
  let h1 = 0xdeadbeef;
  let h2 = 0x41c6ce57;
  let count = 0;
  const kept: string[] = new Array<string>(keepMax).fill('');
  return {
    add(atMs, who, what) {
      const line = `${atMs.toFixed(3)} ${who} ${what}`;
      for (let i = 0; i < line.length; i++) {
        const c = line.charCodeAt(i);
        h1 = Math.imul(h1 ^ c, 2654435761);
        h2 = Math.imul(h2 ^ c, 1597334677);
      }
      kept[count % keepMax] = line;
      count += 1;
    },
    hash: () => (h1 >>> 0).toString(16).padStart(8, '0') + (h2 >>> 0).toString(16).padStart(8, '0'),
    get lines() {
      return count;
    },
    tail(wanted) {
      const n = Math.min(wanted, count, keepMax);
      return Array.from({ length: n }, (_, i) => kept[(count - n + i) % keepMax] ?? '');
    },
  };
}

/** The part of a supervision event that is the same on every machine. */
export function traceText(e: SupervisionEvent): { who: string; what: string } {
  switch (e.kind) {
    case 'child.started':
      return { who: e.path, what: `started ${e.incarnation}` };
    case 'child.exited':
      return {
        who: e.path,
        what: `exited ${e.incarnation} ${e.reason.kind}${e.reason.kind === 'error' ? ` ${e.reason.error.message}` : ''}`,
      };
    case 'child.asleep':
    case 'child.woken':
      return { who: e.path, what: `${e.kind === 'child.asleep' ? 'asleep' : 'woken'} ${e.incarnation} in ${e.state}` };
    case 'child.restarting':
      return { who: e.path, what: `restarting in ${e.delayMs.toFixed(3)} (${e.restartsInWindow})` };
    case 'supervisor.escalated':
    case 'quarantined':
      return { who: e.path, what: `${e.kind} ${e.error}` };
    case 'transition':
      return { who: e.path, what: `${e.from} -> ${e.to} on ${e.event}` };
    case 'message':
      return { who: e.to, what: `<- ${e.type} ${e.key ?? ''}` };
    case 'dead-letter':
      return { who: e.letter.to, what: `dead ${e.letter.type} ${e.letter.reason}` };
  }
}
