/** What is wrong now, worst first: the node, its pods, manifests, actors, and the faults that somebody causes. */

import type { Listed, ProblemsFrame } from '../../feed/frames.ts';
import { AboutPod, Section } from '../bits.tsx';
import { hrefOf } from '../route.ts';
import { nowMs, type PageState } from '../store.ts';
import { duration } from '../words.ts';
import { Faults } from './faults.tsx';

const NONE: ProblemsFrame = {
  ...{ t: 'problems', count: 0, node: [] },
  ...{ pods: { listed: [], more: 0 }, manifests: { listed: [], more: 0 }, actors: { listed: [], more: 0 } },
  deaths: { listed: [], more: 0 },
};

export function Problems({ state }: { state: PageState }) {
  const { hello } = state;
  const { count, node, pods, kubelet, manifests, actors, deaths } = state.problems ?? NONE;
  return (
    <>
      {count === 0 && (
        <p className="quiet">
          {state.problems === null ? 'Asking…' : 'Nothing is wrong: the node, its pods, manifests and actors are well.'}
        </p>
      )}
      <Group title="The node" of={{ listed: node, more: 0 }}>
        {(text) => (
          <li key={text}>
            <i className="dot bad" /> <strong>{text}</strong>
          </li>
        )}
      </Group>
      <Group title="Pods that are not ready" of={pods}>
        {(p) => (
          <li key={p.uid}>
            <i className={`dot ${p.tone}`} /> <a href={hrefOf('pods', p.uid)}>{p.name}</a>{' '}
            <strong className={`tone-${p.tone}`}>{p.status}</strong> <span className="quiet">{p.message}</span>
          </li>
        )}
      </Group>
      {kubelet !== undefined && (
        <Group title="The kubelet" of={kubelet}>
          {(about) => (
            <li key={`${about.uid} ${about.text}`}>
              <i className="dot warn" /> <AboutPod of={about} /> <span className="quiet">{about.text}</span>
            </li>
          )}
        </Group>
      )}
      <Group title="Manifests that cannot be used" of={manifests}>
        {(m) => (
          <li key={m.where}>
            <i className="dot bad" /> <code>{m.where}</code> <span className="quiet">{m.message}</span>
          </li>
        )}
      </Group>
      <Group title="Actors that are not well" of={actors}>
        {(a) => (
          <li key={a.path}>
            <i className="dot warn" /> <a href={hrefOf('actors', a.path)}>{a.name.replace(/^node\//, '')}</a>{' '}
            <span className="quiet">{a.reason}</span>
          </li>
        )}
      </Group>
      <Group title="Deaths that are kept" of={deaths}>
        {(d) => (
          <li key={d.id}>
            <i className="dot off" /> {d.uid === '' ? d.name : <a href={hrefOf('pods', d.uid)}>{d.name}</a>}{' '}
            <span className="quiet">
              {duration(nowMs(state) - d.atMs)} ago: {d.title}
            </span>{' '}
            <code>actorctl death {d.id}</code>
          </li>
        )}
      </Group>
      {hello?.faultInjection === true && hello.recording === undefined && <Faults />}
    </>
  );
}

function Group<T>(o: { title: string; of: Listed<T>; children(item: T): React.ReactNode }) {
  if (o.of.listed.length === 0) return null;
  return (
    <Section title={o.title}>
      <ul className="plain problems">{o.of.listed.map(o.children)}</ul>
      {o.of.more > 0 && <p className="quiet">and {o.of.more} more</p>}
    </Section>
  );
}
