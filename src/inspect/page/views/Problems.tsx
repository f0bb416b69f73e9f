/** What is wrong now, worst first: the node, its pods, manifests, actors, and the faults that somebody causes. */
import type { ActorRow, PodRow } from '../../feed/frames.ts';
import { Section } from '../bits.tsx';
import { hrefOf } from '../route.ts';
import type { PageState } from '../store.ts';
import { podStatus, podTone, toneOf } from '../words.ts';
import { Faults } from './faults.tsx';

const SHOWN_MAX = 30;

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
  return own + troubled(state).length + unwell(state).length;
}

/** Actors whose trouble the node's own problems do not tell. */
function unwell({ actors, problems }: PageState): ActorRow[] {
  const told = new Set(problems?.links);
  return [...actors.values()].filter((a) => !a.ok && !told.has(a.path));
}

export function Problems({ state }: { state: PageState }) {
  const { problems, hello } = state;
  const pods = troubled(state);
  const actors = unwell(state);
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
            <strong className={`tone-${podTone(p)}`}>{podStatus(p)}</strong> <span className="quiet">{p.message || p.reason}</span>
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
