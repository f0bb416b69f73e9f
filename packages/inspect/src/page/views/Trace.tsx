/** The trace of the actors: everything that happens among them, as it happens; filtered, searched, held still. */

import type { RecorderEntry } from '@actorlet/kubelet/machines/recorder/recorderEntry.ts';
import { useMemo, useState } from 'react';
import { EntryRow, KIND_WORDS } from '../bits.tsx';
import type { PageState } from '../store.ts';

const SHOWN_MAX = 300;
const GROUPS: readonly [string, readonly string[]][] = [
  ['states', ['transition']],
  ['messages', ['message']],
  ['starts and ends', ['child.started', 'child.exited', 'child.restarting', 'child.asleep', 'child.woken']],
  ['trouble', ['supervisor.escalated', 'quarantined', 'dead-letter', 'note']],
];

export function Trace({ state }: { state: PageState }) {
  const [query, setQuery] = useState('');
  const [off, setOff] = useState<ReadonlySet<string>>(new Set());
  const [held, setHeld] = useState<readonly RecorderEntry[] | null>(null);
  const source = held ?? state.events;
  const podNames = useMemo(() => new Map([...state.pods.values()].map((p) => [p.uid, p.name])), [state.pods]);
  const fits = useMemo(() => {
    const words = query
      .toLowerCase()
      .split(/\s+/)
      .filter((w) => w !== '');
    const hidden = new Set(GROUPS.flatMap(([name, kinds]) => (off.has(name) ? kinds : [])));
    return (e: RecorderEntry): boolean => {
      if (hidden.has(e.kind)) return false;
      if (words.length === 0) return true;
      const uid = e.path.split('/').find((part) => podNames.has(part)) ?? e.detail;
      const text = `${e.path} ${KIND_WORDS[e.kind] ?? ''} ${e.what} ${e.detail} ${e.from} ${podNames.get(uid) ?? ''}`.toLowerCase();
      return words.every((w) => text.includes(w));
    };
  }, [query, off, podNames]);
  const shown: RecorderEntry[] = [];
  for (let i = source.length - 1; i >= 0 && shown.length < SHOWN_MAX; i--) {
    const e = source[i];
    if (e !== undefined && fits(e)) shown.push(e);
  }
  const waiting = held === null ? 0 : state.events.filter((e) => e.n > (held.at(-1)?.n ?? -1)).length;
  const toggle = (name: string) => {
    const next = new Set(off);
    if (!next.delete(name)) next.add(name);
    setOff(next);
  };
  return (
    <section className="wide" aria-label="Trace">
      <div className="bar">
        <input
          type="search"
          aria-label="Search the trace"
          placeholder="Search: an actor, a pod, a message"
          value={query}
          onChange={(e) => setQuery(e.target.value)}
        />
        {GROUPS.map(([name]) => (
          <button key={name} type="button" aria-pressed={!off.has(name)} onClick={() => toggle(name)}>
            {name}
          </button>
        ))}
        <button type="button" className="pause" aria-pressed={held !== null} onClick={() => setHeld(held === null ? state.events : null)}>
          {held === null ? 'Pause' : `Go on${waiting > 0 ? ` (${waiting} new)` : ''}`}
        </button>
      </div>
      {state.missed > 0 && <p className="quiet pad">{state.missed} entries came faster than they could be shown.</p>}
      <ol className="plain entries stream">
        {shown.map((e) => (
          <EntryRow key={e.n} e={e} withPath />
        ))}
      </ol>
      {shown.length === 0 && <p className="quiet pad">Nothing fits.</p>}
    </section>
  );
}
