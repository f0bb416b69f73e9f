/** Small parts that several views share. */

import type { RecorderEntry } from '@actorlet/kubelet/machines/recorder/recorderEntry.ts';
import { Component, type ReactNode, useState } from 'react';
import type { Shown } from '../project.ts';
import { hrefOf } from './route.ts';
import { usePage } from './store.ts';
import { clock } from './words.ts';

export function Fact({ name, children, tone = '' }: { name: string; children: ReactNode; tone?: string }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd className={tone === '' ? '' : `tone-${tone}`}>{children}</dd>
    </div>
  );
}

export function Section({ title, note = '', children }: { title: string; note?: string; children: ReactNode }) {
  return (
    <section>
      <h2>
        {title} {note !== '' && <span className="quiet">{note}</span>}
      </h2>
      {children}
    </section>
  );
}

/** The pod that a line is about, with a way to it while it is there. */
export function AboutPod({ of: { pod, uid } }: { of: { pod: string; uid: string } }) {
  return uid === '' ? pod === '' ? 'the node' : pod : <a href={hrefOf('pods', uid)}>{pod}</a>;
}

/** Drawn, since fonts lack such signs. */
const ICONS = {
  open: 'M3 5.5 8 11l5-5.5z',
  closed: 'M5.5 3 11 8l-5.5 5z',
  restart: 'M13 8a5 5 0 1 1-1.6-3.7l1.1-1.1V7H8.7l1.6-1.6A3.4 3.4 0 1 0 11.4 8z',
  mail: 'M2 4h12v8H2zm1.5 1.2v.3L8 8.8l4.5-3.3v-.3z',
  first: 'M3 3h2v10H3zm10 0v10L6 8z',
  last: 'M11 3h2v10h-2zM3 3l7 5-7 5z',
} as const;

export function Icon({ name }: { name: keyof typeof ICONS }) {
  return (
    <svg className="icon" viewBox="0 0 16 16" aria-hidden="true">
      <path d={ICONS[name]} fillRule="evenodd" />
    </svg>
  );
}

/** A view that cannot be drawn leaves the rest of the page alone. At another place than `at` it is tried anew. */
export class Guard extends Component<{ at: string; children: ReactNode }, { why: string }> {
  override state = { why: '' };
  static getDerivedStateFromError(error: unknown): { why: string } {
    return { why: String(error) };
  }
  override componentDidUpdate(before: { at: string }): void {
    if (before.at !== this.props.at && this.state.why !== '') this.setState({ why: '' });
  }
  override render(): ReactNode {
    if (this.state.why === '') return this.props.children;
    return <p className="error pad">This view could not be drawn: {this.state.why}. Another view, or a reload, shows the rest.</p>;
  }
}

/** Projected data as a tree of its own. */
export function Data({ name, value, depth = 0 }: { name: string; value: Shown; depth?: number }) {
  if (value === null || typeof value !== 'object') {
    return (
      <div className="data-leaf">
        <span className="data-key">{name}</span> <span className={`data-${value === null ? 'null' : typeof value}`}>{String(value)}</span>
      </div>
    );
  }
  const entries: [string, Shown][] = Array.isArray(value)
    ? value.map((v: Shown, i): [string, Shown] => [String(i), v])
    : Object.entries(value);
  if (entries.length === 0) {
    return (
      <div className="data-leaf">
        <span className="data-key">{name}</span> <span className="data-null">empty</span>
      </div>
    );
  }
  return (
    <details className="data" open={depth < 1}>
      <summary>
        <span className="data-key">{name}</span> <span className="quiet">{entries.length}</span>
      </summary>
      {entries.map(([key, v]) => (
        <Data key={key} name={key} value={v} depth={depth + 1} />
      ))}
    </details>
  );
}

/** UIDs say nothing to a person: pods have names. */
function usePodNames(): (text: string) => string {
  const { pods } = usePage();
  return (text) => text.replaceAll(UID, (uid) => pods.get(uid)?.name ?? uid);
}
const UID = /[0-9a-f]{32}|[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}/g;

export function EntryRow({ e, withPath }: { e: RecorderEntry; withPath: boolean }) {
  const named = usePodNames();
  const [open, setOpen] = useState(false);
  const last = e.causes.at(-1);
  return (
    <li className={`entry entry-${e.kind.replace('.', '-')}`}>
      <time>{clock(e.atMs)}</time>
      <span className="entry-kind">{KIND_WORDS[e.kind] ?? e.kind}</span>
      {withPath && (
        <a className="entry-path" href={hrefOf('actors', e.path)} title={e.path}>
          {named(e.path.replace(/^node\//, ''))}
        </a>
      )}
      <span className="entry-what">
        {e.what.replace(' -> ', ' → ')} <span className="quiet">{named(e.detail)}</span>
        {e.from !== '' && <span className="quiet"> from {named(e.from.replace(/^node\//, ''))}</span>}
        {last !== undefined && (
          <button type="button" className="linkish" aria-expanded={open} onClick={() => setOpen(!open)}>
            why
          </button>
        )}
        {open && (
          <ol className="causes">
            {e.causes.map((c) => (
              <li key={`${c.atMs} ${c.by} ${c.what}`}>
                <time>{clock(c.atMs)}</time> {c.what} <span className="quiet">{c.by.replace(/^node\//, '')}</span>
              </li>
            ))}
          </ol>
        )}
      </span>
    </li>
  );
}

export const KIND_WORDS: Readonly<Record<string, string>> = {
  message: 'message',
  transition: 'state',
  'child.started': 'started',
  'child.exited': 'ended',
  'child.restarting': 'restart',
  'child.asleep': 'asleep',
  'child.woken': 'woken',
  'supervisor.escalated': 'gave up',
  quarantined: 'quarantine',
  'dead-letter': 'dead letter',
  note: 'note',
};
