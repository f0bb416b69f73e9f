/** What is wrong now, worst first: the node, its pods, manifests, actors, and the faults that somebody causes. */
import { useEffect, useState } from 'react';
import type { InjectionView } from '../../../machines/faults/live.ts';
import type { PodRow } from '../../feed/frames.ts';
import { Section } from '../bits.tsx';
import { hrefOf, token } from '../route.ts';
import type { PageState } from '../store.ts';
import { duration, podTone, toneOf } from '../words.ts';

const SHOWN_MAX = 30;
const LOOK_EVERY_MS = 2_000;

/** A pod that should be ready and is not. One that was just seen is given its time. */
function isTrouble(p: PodRow, nowMs: number): boolean {
  const tone = podTone(p);
  return tone === 'bad' || (tone === 'busy' && !p.removed && nowMs - p.seenAtMs > START_MS);
}
const START_MS = 20_000;

function troubled(state: PageState): PodRow[] {
  const nowMs = state.atMs;
  const worst = (p: PodRow): number => (podTone(p) === 'bad' ? 0 : 1);
  return [...state.pods.values()].filter((p) => isTrouble(p, nowMs)).sort((a, b) => worst(a) - worst(b));
}

export function problemCount(state: PageState): number {
  const { problems } = state;
  const own = problems === null ? 0 : problems.node.length + problems.manifests.length + problems.manifestsMore;
  return own + troubled(state).length + [...state.actors.values()].filter((a) => !a.ok).length;
}

export function Problems({ state }: { state: PageState }) {
  const { problems, hello } = state;
  const pods = troubled(state);
  const actors = [...state.actors.values()].filter((a) => !a.ok);
  const well = problemCount(state) === 0;
  return (
    <>
      {well && <p className="quiet">Nothing is wrong: the node, its pods, manifests and actors are well.</p>}
      <Group title="The node" of={problems?.node ?? []}>
        {(text) => (
          <li key={text}>
            <i className="dot bad" /> <strong>{text}</strong>
          </li>
        )}
      </Group>
      <Group title="Pods that are not ready" of={pods}>
        {(p) => (
          <li key={p.uid}>
            <i className={`dot ${podTone(p)}`} /> <a href={hrefOf('pods', p.uid)}>{`${p.namespace}/${p.name}`}</a>{' '}
            <strong>{p.rejected ? 'Refused' : p.reason || p.phase}</strong> <span className="quiet">{p.message}</span>
          </li>
        )}
      </Group>
      <Group title="Manifests that cannot be used" of={problems?.manifests ?? []} more={problems?.manifestsMore ?? 0}>
        {(m) => (
          <li key={m.where}>
            <i className="dot bad" /> <code>{m.where}</code> <span className="quiet">{m.message}</span>
          </li>
        )}
      </Group>
      <Group title="Actors that are not well" of={actors}>
        {(a) => (
          <li key={a.path}>
            <i className={`dot ${toneOf(a)}`} /> <a href={hrefOf('actors', a.path)}>{a.name}</a>{' '}
            <span className="quiet">{a.error || `${a.reason} ${a.message}`}</span>
          </li>
        )}
      </Group>
      {hello?.faultInjection === true && hello.recording === undefined && <Faults />}
    </>
  );
}

function Group<T>(o: { title: string; of: readonly T[]; more?: number; children(item: T): React.ReactNode }) {
  if (o.of.length === 0) return null;
  const more = (o.more ?? 0) + Math.max(0, o.of.length - SHOWN_MAX);
  return (
    <Section title={o.title}>
      <ul className="plain problems">{o.of.slice(0, SHOWN_MAX).map(o.children)}</ul>
      {more > 0 && <p className="quiet">and {more} more</p>}
    </Section>
  );
}

/** What is injected now; who has the token may end it. */
function Faults() {
  const [injected, setInjected] = useState<readonly InjectionView[]>([]);
  const [said, setSaid] = useState('');
  const look = async () => {
    const answer = await fetch('/api/inject').catch(() => null);
    if (answer?.ok === true) setInjected(((await answer.json()) as { injections: readonly InjectionView[] }).injections);
  };
  useEffect(() => {
    void look();
    const timer = setInterval(() => void look(), LOOK_EVERY_MS);
    return () => clearInterval(timer);
  }, []);
  const stop = async (id: string) => {
    const headers = { 'x-actorlet-token': token() };
    const answer = await fetch(`/api/inject/${encodeURIComponent(id)}`, { method: 'DELETE', headers }).catch(() => null);
    setSaid(answer?.ok === true ? '' : `It was not ended: ${answer === null ? 'no answer' : await answer.text()}`);
    await look();
  };
  return (
    <Group title="Faults that are injected" of={injected}>
      {(i) => (
        <li key={i.id}>
          <i className="dot warn" /> <strong>{i.scenario}</strong>{' '}
          <span className="quiet">{`${i.description} ends in ${duration(i.endsInMs)}`}</span>{' '}
          {token() !== '' && (
            <button type="button" onClick={() => void stop(i.id)}>
              Stop
            </button>
          )}{' '}
          <span role="status">{said}</span>
        </li>
      )}
    </Group>
  );
}
