/** The containers of a pod: how each is, and the end of its log. */
import { useState } from 'react';
import { Section } from '../../bits.tsx';
import { hrefOf } from '../../route.ts';
import { duration } from '../../words.ts';
import { Logs } from './Logs.tsx';
import type { Told } from './lanes.ts';

/** `withLogs`: this is a live node. */
export function Containers({ told, now, uid, withLogs }: { told: Told; now: number; uid: string; withLogs: boolean }) {
  const [opened, setOpened] = useState('');
  return (
    <Section title="Containers">
      <ul className="plain cards">
        {told.containers.map((c) => {
          const probes = told.probes.filter((p) => p.container === c.name);
          return (
            <li key={`${c.init} ${c.name}`}>
              {withLogs && (
                <button
                  type="button"
                  className="card-act"
                  aria-label={`Log of ${c.name}`}
                  aria-expanded={opened === c.name}
                  onClick={() => setOpened(opened === c.name ? '' : c.name)}
                >
                  Log
                </button>
              )}
              <p>
                <i className={`dot ${toneOf(c)}`} />
                <a href={hrefOf('actors', `node/pods/workers/${uid}>container:${c.name}`)}>{c.name}</a>{' '}
                {c.init && <span className="quiet">init</span>} <span className="quiet">{c.image}</span>
              </p>
              <p>
                {c.state} {c.reason !== '' && `(${c.reason})`}
                {c.startedAtMs > 0 && c.state === 'running' && <span className="quiet"> for {duration(now - c.startedAtMs)}</span>}
                {c.restartCount > 0 && (
                  <span className="tone-warn-text">
                    {' '}
                    · {c.restartCount} {c.restartCount === 1 ? 'restart' : 'restarts'}
                  </span>
                )}
                {c.nextStartAtMs !== undefined && c.nextStartAtMs > now && <span> · next start in {duration(c.nextStartAtMs - now)}</span>}
              </p>
              {c.lastExit !== '' && <p className="quiet">last run: {c.lastExit}</p>}
              {c.message !== '' && <p className="quiet">{c.message}</p>}
              {probes.length > 0 && <p className="quiet">probes: {probes.map((p) => `${p.type} ${p.result}`).join(', ')}</p>}
              {opened === c.name && <Logs uid={uid} container={c.name} restarts={c.restartCount} />}
            </li>
          );
        })}
      </ul>
    </Section>
  );
}

function toneOf(c: Told['containers'][number]): string {
  if (c.ready) return 'ok';
  if (c.state === 'running') return 'busy';
  if (/BackOff|Err/.test(c.reason)) return 'bad';
  return c.reason === '' || c.reason === 'Completed' ? 'off' : 'warn';
}
