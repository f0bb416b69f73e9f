/** One pod: what it is waiting for, how long each phase took, its containers, volumes and probes, and why. */

import { podStatus, podTone, podTrouble, type Tone } from '@actorlet/shown/src/pods/podStatus.ts';
import type { PodRow } from '../../../feed/frames.ts';
import { EntryRow, Fact, Section } from '../../bits.tsx';
import { hrefOf } from '../../route.ts';
import { nowMs, type PageState } from '../../store.ts';
import { clock, duration } from '../../words.ts';
import { PodActs } from './Acts.tsx';
import { Containers } from './Containers.tsx';
import { Life } from './Life.tsx';
import type { Told } from './lanes.ts';
import { Sequence } from './Sequence.tsx';
import { Timeline } from './Timeline.tsx';

/** What a reader must know before anything else; '' for a pod that is well. */
function troubleOf(row: PodRow | undefined, now: number): string {
  const tone = row === undefined ? 'off' : podTone(row, now);
  if (row === undefined || (tone !== 'bad' && tone !== 'warn')) return '';
  return row.rejected ? `Refused: ${row.reason}` : podStatus(row);
}

export function PodPage({ state, uid }: { state: PageState; uid: string }) {
  const frame = state.pod?.uid === uid ? state.pod : null;
  const row = state.pods.get(uid);
  const now = nowMs(state);
  const told = frame?.pod ?? null;
  const tone = row === undefined ? 'off' : podTone(row, now);
  const trouble = troubleOf(row, now);
  const worker = state.actors.get(`node/pods/workers/${uid}`);
  return (
    <article className="wide pod" aria-label={`Pod ${told?.name ?? uid}`}>
      <a className="back always" href={hrefOf('pods')}>
        ← All pods
      </a>
      <h1>
        {row !== undefined && <i className={`dot big ${tone}`} />} {told?.name ?? row?.name ?? uid}{' '}
        <span className="quiet">{told?.namespace ?? row?.namespace}</span>
      </h1>
      {frame === null && <p className="quiet">Asking…</p>}
      {frame !== null && told === null && <p className="quiet">This node knows nothing of that pod (any more).</p>}
      {told !== null && (
        <>
          <p className="said">
            <span className={`chip tone-${tone}`}>{trouble || told.phase}</span>
            {told.worker !== null && (
              <>
                <a href={hrefOf('actors', `node/pods/workers/${uid}`)}>
                  <code>{worker?.state || told.worker.state}</code>
                </a>
                <span className="quiet">for {duration(now - told.worker.sinceMs)}</span>
              </>
            )}
            <span>
              {trouble === '' ? told.worker?.reason : ''}{' '}
              <span className="quiet">
                {trouble === '' || row === undefined ? told.worker?.message || told.message : podTrouble(row, now)}
              </span>
            </span>
          </p>
          {state.hello?.actsOnPods === true && (
            <PodActs uid={uid} who={`${told.namespace}/${told.name}`} containers={told.containers.map(({ name }) => name)} />
          )}
          <dl className="facts">
            <Fact name="Seen">{told.seenAtMs === 0 ? '–' : `${duration(now - told.seenAtMs)} ago`}</Fact>
            <Fact name="Ready first">{readyAfter(told)}</Fact>
            <Fact name="From">{told.source || '–'}</Fact>
            {told.conditions.map((c) => (
              <Fact key={c.type} name={c.type} tone={c.status === 'True' ? '' : toneOfUnmet(tone)}>
                <span title={[c.reason, c.message, clock(c.sinceMs)].filter((t) => t !== '').join('\n')}>{c.status}</span>
              </Fact>
            ))}
          </dl>
          <Section title="Timeline">
            <Timeline told={told} now={now} troubled={trouble !== ''} />
          </Section>
          <div className="columns">
            <Containers told={told} now={now} uid={uid} withLogs={state.hello?.recording === undefined} />
            <Section title="Because" note="oldest first">
              {told.causes.length === 0 ? (
                <p className="quiet">No cause is recorded.</p>
              ) : (
                <ol className="plain causes">
                  {told.causes.map((c) => (
                    <li key={`${c.atMs} ${c.by} ${c.what}`}>
                      <time>{clock(c.atMs)}</time> {c.what} <span className="quiet">{c.by.replace(/^node\//, '')}</span>
                    </li>
                  ))}
                </ol>
              )}
            </Section>

            <Volumes told={told} now={now} />
            <Section title="Events">
              {told.events.length === 0 ? (
                <p className="quiet">None.</p>
              ) : (
                <ul className="plain">
                  {told.events.toReversed().map((e) => (
                    <li key={`${e.atMs} ${e.reason} ${e.message}`} className={e.type === 'Warning' ? 'tone-warn-text' : ''}>
                      <time>{clock(e.atMs, false)}</time> <strong>{e.reason}</strong> {e.message}
                      {e.count > 1 && <span className="quiet"> × {e.count}</span>}
                    </li>
                  ))}
                </ul>
              )}
            </Section>
          </div>
          {state.life !== null && <Life chart={state.life} way={told.way ?? []} now={now} />}
          <Section title="Messages" note="between the node’s actors, about this pod">
            <Sequence messages={told.messages} uid={uid} name={told.name} />
          </Section>
          <Section title="In words">
            <pre>{told.why.join('\n')}</pre>
          </Section>
          <details>
            <summary>Every recorded message</summary>
            <ol className="plain entries">
              {told.messages.toReversed().map((e) => (
                <EntryRow key={e.n} e={e} withPath />
              ))}
            </ol>
          </details>
        </>
      )}
    </article>
  );
}

/** A pod that has ended is not expected to be ready. */
function toneOfUnmet(tone: Tone): string {
  return tone === 'off' ? '' : tone === 'bad' ? 'bad' : 'warn';
}

function readyAfter(told: Told): string {
  const { readyAtMs } = told.history;
  if (readyAtMs === undefined) return 'not yet';
  return told.seenAtMs === 0 ? clock(readyAtMs) : `after ${duration(readyAtMs - told.seenAtMs)}`;
}

function Volumes({ told, now }: { told: Told; now: number }) {
  if (told.volumes.length === 0) return null;
  return (
    <Section title="Volumes">
      <ul className="plain">
        {told.volumes.map((v) => (
          <li key={v.name}>
            <i className={`dot ${v.state === 'mounted' ? 'ok' : v.message === '' ? 'busy' : 'warn'}`} />
            {v.name} <span className="quiet">{v.plugin.replace('kubernetes.io~', '')}</span> {v.state}{' '}
            <span className="quiet">
              {duration(now - v.sinceMs)} {v.message}
            </span>
          </li>
        ))}
      </ul>
    </Section>
  );
}
