/** The end of a container's log, asked for again while it is open. */
import { useEffect, useRef, useState } from 'react';
import { token } from '../../route.ts';

const AGAIN_MS = 2_000;
/** Of the runtime's `2026-01-31T12:00:00.123456789Z` the time of the day is shown. */
const STAMP = /^\d{4}-\d\d-\d\dT(\d\d:\d\d:\d\d\.\d{3})\S* /;

export function Logs({ uid, container, restarts }: { uid: string; container: string; restarts: number }) {
  const [previous, setPrevious] = useState(false);
  const [query, setQuery] = useState('');
  const [said, setSaid] = useState<{ ok: boolean; text: string } | null>(null);
  const end = useRef<HTMLPreElement>(null);
  useEffect(() => {
    if (token() === '') return;
    const closed = new AbortController();
    let timer: ReturnType<typeof setTimeout>;
    const look = async (): Promise<void> => {
      const asked = new URLSearchParams({ pod: uid, container, ...(previous ? { previous: '' } : {}) });
      const answer = await fetch(`/api/logs?${asked}`, { headers: { 'x-actorlet-token': token() }, signal: closed.signal }).catch(
        () => null,
      );
      const text = answer === null ? 'The daemon does not answer.' : await answer.text().catch(() => '');
      if (closed.signal.aborted) return;
      setSaid({ ok: answer?.ok === true, text });
      timer = setTimeout(() => void look(), AGAIN_MS);
    };
    void look();
    return () => {
      closed.abort();
      clearTimeout(timer);
    };
  }, [uid, container, previous]);
  const word = query.toLowerCase();
  const lines = said?.ok === true ? said.text.split('\n').filter((l) => l !== '' && l.toLowerCase().includes(word)) : [];
  const last = lines.at(-1);
  useEffect(() => {
    if (last !== undefined) end.current?.scrollTo({ top: end.current.scrollHeight });
  }, [last]);
  if (token() === '') {
    return (
      <p className="quiet">
        Open this page with <code>actorctl ui</code> to read logs.
      </p>
    );
  }
  return (
    <section className="logs" aria-label={`Log of ${container}`}>
      <p className="bar">
        <input type="search" aria-label="Find in the log" placeholder="Find" value={query} onChange={(e) => setQuery(e.target.value)} />
        {restarts > 0 && (
          <button type="button" aria-pressed={previous} onClick={() => setPrevious(!previous)}>
            The run before
          </button>
        )}
      </p>
      {said?.ok === false && <p className="error">{said.text}</p>}
      {said?.ok === true && (
        <pre ref={end}>
          {lines.length === 0 ? (
            <span className="quiet">{word === '' ? 'It wrote nothing.' : 'Nothing fits.'}</span>
          ) : (
            lines.map((l) => l.replace(STAMP, '$1 ')).join('\n')
          )}
        </pre>
      )}
    </section>
  );
}
