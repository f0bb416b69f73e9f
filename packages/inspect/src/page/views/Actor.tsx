/** One actor: where it is in its chart, how it came there, what it holds, what it would take next. */

import { type Chart, type ChartState, onlyState } from '@actorlet/kubelet/machines/chart/definition.ts';
import type { RecorderEntry } from '@actorlet/kubelet/machines/recorder/recorderEntry.ts';
import { useMemo, useState } from 'react';
import type { ActorFrame, ActorRow } from '../../feed/frames.ts';
import { Data, EntryRow, Fact, Section } from '../bits.tsx';
import { bundlesOf } from '../chart/drawing.ts';
import { pathTo } from '../chart/fold.ts';
import { Statechart } from '../chart/Statechart.tsx';
import { hrefOf, token } from '../route.ts';
import { nowMs, type PageState } from '../store.ts';
import { clock, duration, toneOf } from '../words.ts';
import { OF_ACTOR, useInject } from './faults.tsx';

/** The way it came: so many of its last transitions are lit. */
const WAY_STEPS = 3;

export function ActorPage({ state, path }: { state: PageState; path: string }) {
  const [root = '', ...below] = path.split('>');
  const row = state.actors.get(root);
  const frame = state.actor?.path === path ? state.actor : null;
  const chart = state.chart?.path === path ? state.chart.chart : null;
  const [asked, setAsked] = useState('');
  const active = useMemo(() => new Set(frame?.live?.active ?? []), [frame]);
  const taken = useMemo(() => {
    const steps = (frame?.steps ?? []).slice(-WAY_STEPS).flatMap((s) => s.transitions);
    // Before the first step that was seen, the recorder knows at least from where it came.
    return steps.length > 0 || chart === null ? steps : wayFrom(chart, frame?.history ?? []);
  }, [frame, chart]);
  const only = chart === null ? null : onlyState(chart);
  const chosen = chart === null || asked === '' ? null : (pathTo(chart.root, asked).at(-1) ?? null);
  return (
    <article className="detail" aria-label={`Actor ${path}`}>
      <a className="back" href={hrefOf('actors')}>
        ← All actors
      </a>
      <p className="crumbs">
        <Crumbs path={root} />
      </p>
      <h1>{below.length > 0 ? below.join(' › ') : (row?.name ?? root.slice(root.lastIndexOf('/') + 1))}</h1>
      {row === undefined ? (
        <p className="quiet">This actor is not there (any more).</p>
      ) : (
        below.length === 0 && <Facts row={row} now={nowMs(state)} />
      )}
      {row?.pod ? (
        <p>
          <a href={hrefOf('pods', row.pod)}>The pod’s own page: timeline, containers, messages</a>
        </p>
      ) : null}
      {state.hello?.faultInjection && row !== undefined && below.length === 0 && <Acts path={root} />}
      {only !== null ? (
        <OneState state={only} taken={new Set(taken)} />
      ) : chart !== null ? (
        <>
          <Statechart chart={chart} active={active} taken={taken} selected={asked} onSelect={setAsked} />
          {chosen !== null && <Chosen state={chosen} />}
        </>
      ) : (
        frame !== null && (
          <p className="quiet pad">{frame.live === null ? 'It is not running just now.' : 'It has no statechart of its own.'}</p>
        )
      )}
      {frame !== null && <Details frame={frame} path={path} />}
    </article>
  );
}

/** A machine with one state has no picture: what it takes is all that there is of it. */
function OneState({ state, taken }: { state: ChartState; taken: ReadonlySet<string> }) {
  const { transitions } = state;
  return (
    <Section title="One state" note="it is always the same; this is what it takes, and what it does then">
      {transitions.length === 0 ? (
        <p className="quiet">It takes nothing.</p>
      ) : (
        <ul className="plain">
          {transitions.map((t) => (
            <li key={t.id} className={taken.has(t.id) ? 'tone-ok' : ''}>
              <code>{t.label}</code> {t.guard === '' ? '' : `[${t.guard}]`} <span className="quiet">{t.does ?? t.actions.join(', ')}</span>
            </li>
          ))}
        </ul>
      )}
    </Section>
  );
}

function Crumbs({ path }: { path: string }) {
  const parts = path.split('/');
  return parts.slice(0, -1).map((part, i) => {
    const at = parts.slice(0, i + 1).join('/');
    return (
      <span key={at}>
        <a href={hrefOf('actors', at)}>{part}</a> /{' '}
      </span>
    );
  });
}

function Facts({ row, now }: { row: ActorRow; now: number }) {
  const { mail } = row;
  return (
    <>
      <p className="said">
        <span className={`chip tone-${toneOf(row)}`}>{row.lifecycle}</span>
        {row.state !== '' && <code>{row.state}</code>}
        {row.reason !== '' && (
          <span>
            {row.reason}
            {row.message !== '' && <span className="quiet">: {row.message}</span>}
          </span>
        )}
      </p>
      {row.error !== '' && <p className="error">{row.lost === true ? row.error : `Last error: ${row.error}`}</p>}
      <dl className="facts">
        <Fact name="In this state">{duration(now - row.sinceMs)}</Fact>
        <Fact name="Actor restarts" tone={row.restarts > 0 ? 'warn' : ''}>
          {row.restarts}
        </Fact>
        <Fact name="Incarnation">{row.incarnation}</Fact>
        {mail !== null && (
          <>
            <Fact name="Mail" tone={mail.depth > 0 ? 'busy' : ''}>
              {mail.depth}
              {mail.suspended ? ' (suspended)' : ''}
            </Fact>
            <Fact name="Oldest mail">{mail.depth === 0 ? '–' : duration(now - mail.oldestAtMs)}</Fact>
            <Fact name="Most at once">{mail.depthMax}</Fact>
            <Fact name="Merged">{mail.coalesced}</Fact>
            <Fact name="Dropped" tone={mail.dropped > 0 ? 'warn' : ''}>
              {mail.dropped}
            </Fact>
          </>
        )}
      </dl>
    </>
  );
}

function Chosen({ state }: { state: ChartState }) {
  return (
    <Section title={`State ${state.key}`} note={state.reason}>
      {state.message !== '' && <p className="quiet">{state.message}</p>}
      {state.invokes.length > 0 && <p>Runs: {state.invokes.map((i) => i.src).join(', ')}</p>}
      {state.entry.length + state.exit.length > 0 && (
        <p className="quiet">
          {state.entry.length > 0 && `On entry: ${state.entry.join(', ')}. `}
          {state.exit.length > 0 && `On exit: ${state.exit.join(', ')}.`}
        </p>
      )}
      <Transitions list={state.transitions} />
    </Section>
  );
}

function Transitions({ list }: { list: readonly { event: string; label: string; guard: string; targets: readonly string[] }[] }) {
  if (list.length === 0) return <p className="quiet">None.</p>;
  return (
    <ul className="plain transitions">
      {list.map((t) => (
        <li key={`${t.event} ${t.guard} ${t.targets.join()}`}>
          <code>{t.label}</code>
          {t.guard !== '' && <span className="quiet"> if {t.guard}</span>}
          <span className="quiet"> → </span>
          {t.targets.length === 0 ? <span className="quiet">stays</span> : t.targets.map((id) => lastPart(id)).join(', ')}
        </li>
      ))}
    </ul>
  );
}

function Details({ frame, path }: { frame: ActorFrame; path: string }) {
  const { live } = frame;
  return (
    <div className="columns">
      {live !== null && (
        <Section title="Takes next" note={live.value}>
          <Transitions list={live.next} />
        </Section>
      )}
      <Section title="Way it came" note="since you look">
        {frame.steps.length === 0 ? (
          <p className="quiet">No step yet.</p>
        ) : (
          <ol className="plain steps" reversed>
            {frame.steps.toReversed().map((s) => (
              <li key={s.n}>
                <time>{clock(s.atMs)}</time> <code>{s.label}</code>{' '}
                {s.from === s.to ? <span className="quiet">stayed in {s.to}</span> : <span>→ {s.to}</span>}
              </li>
            ))}
          </ol>
        )}
      </Section>
      {live !== null && live.children.length > 0 && (
        <Section title="Its own actors">
          <ul className="plain">
            {live.children.map((c) => (
              <li key={c.id}>
                {c.machine ? <a href={hrefOf('actors', `${path}>${c.id}`)}>{c.id}</a> : c.id}{' '}
                <span className="quiet">{c.state || c.status}</span>
              </li>
            ))}
          </ul>
        </Section>
      )}
      {live !== null && (
        <Section title="Context" note="as far as it may be shown">
          <div className="data-root">
            <Data name="context" value={live.context} />
          </div>
        </Section>
      )}
      <Section title="Recorded">
        {frame.history.length === 0 ? (
          <p className="quiet">The flight recorder has nothing of it.</p>
        ) : (
          <ol className="plain entries">
            {frame.history.toReversed().map((e) => (
              <EntryRow key={e.n} e={e} withPath={false} />
            ))}
          </ol>
        )}
      </Section>
    </div>
  );
}

/** Only there when the daemon lets faults be injected; the token comes with `actorctl ui`. */
function Acts({ path }: { path: string }) {
  const { said, inject, cause } = useInject();
  const [scenario, setScenario] = useState('');
  return (
    <details className="acts">
      <summary>Faults</summary>
      {token() === '' ? (
        <p className="quiet">
          Open this page with <code>actorctl ui</code> to act; reading needs nothing.
        </p>
      ) : (
        <>
          <p>
            <button type="button" onClick={() => void cause('kill', OF_ACTOR.kill(path))}>
              Kill this actor
            </button>{' '}
            <button type="button" onClick={() => void cause('pause', OF_ACTOR.hold(path))}>
              Hold its mail for 10 s
            </button>
          </p>
          <label>
            A scenario (YAML, docs/fault-injection.md)
            <textarea rows={6} value={scenario} onChange={(e) => setScenario(e.target.value)} spellCheck={false} />
          </label>
          <p>
            <button type="button" disabled={scenario.trim() === ''} onClick={() => void inject('scenario', scenario)}>
              Inject
            </button>{' '}
            <span role="status">{said}</span>
          </p>
        </>
      )}
    </details>
  );
}

/** Transitions between the last two recorded states, passing states that are left at once. */
function wayFrom(chart: Chart, history: readonly RecorderEntry[]): string[] {
  const last = history.findLast((e) => e.kind === 'transition');
  const [from = '', to = ''] = last?.what.split(' -> ') ?? [];
  if (from === '' || /[(,]/.test(from + to)) return [];
  const [start, end] = [`${chart.id}.${from}`, `${chart.id}.${to}`];
  const edges = bundlesOf(chart.root);
  const paths: { at: string; ids: string[] }[] = [{ at: start, ids: [] }];
  for (let n = 0; n < paths.length && n < 400; n++) {
    const here = paths[n];
    if (here === undefined || here.ids.length >= WAY_STEPS) continue;
    for (const e of edges) {
      if (e.source !== here.at && !here.at.startsWith(`${e.source}.`)) continue;
      const ids = [...here.ids, e.transitions[0]?.id ?? ''];
      if (e.target === end) return ids;
      paths.push({ at: e.target, ids });
    }
  }
  return [];
}
function lastPart(id: string): string {
  return id.slice(id.lastIndexOf('.') + 1);
}
