/** Faults on a node that allows them: what is injected, presets, a scenario of one's own. */

import type { InjectionView } from '@actorlet/faults/src/live.ts';
import { useEffect, useState } from 'react';
import { Section } from '../bits.tsx';
import { token } from '../route.ts';
import { duration } from '../words.ts';

const LOOK_EVERY_MS = 2_000;

interface Preset {
  title: string;
  /** A fault of a scenario, docs/fault-injection.md. */
  fault: Readonly<Record<string, unknown>>;
}
/** Each ends by itself. */
const PRESETS: readonly Preset[] = [
  { title: 'The runtime is away for 30 s', fault: { kind: 'runtime.down', for: '30s' } },
  { title: 'The runtime answers 2 s late for 1 min', fault: { kind: 'cri', action: 'delay', delay: '2s', for: '1m' } },
  {
    title: 'Every second start of a container fails for 1 min',
    fault: { kind: 'cri', action: 'error', select: { methods: ['StartContainer'] }, probability: 0.5, for: '1m' },
  },
  { title: 'Images cannot be pulled for 1 min', fault: { kind: 'cri', action: 'error', select: { methods: ['PullImage'] }, for: '1m' } },
  { title: 'The runtime’s events are lost for 1 min', fault: { kind: 'hints', action: 'drop', for: '1m' } },
  { title: 'The API server is away for 1 min', fault: { kind: 'api.partition', for: '1m' } },
  { title: 'The disk is full for 30 s', fault: { kind: 'disk.full', for: '30s' } },
  { title: 'Memory is short for 1 min', fault: { kind: 'pressure.memory', available: '10Mi', for: '1m' } },
];
/** For one actor. */
export const OF_ACTOR = {
  kill: (path: string): object => ({ kind: 'actor.kill', select: { actors: [path] } }),
  hold: (path: string): object => ({ kind: 'mailbox', action: 'delay', delay: '10s', for: '10s', select: { actors: [path] } }),
} as const;

function scenarioOf(name: string, fault: object): string {
  return JSON.stringify({
    ...{ apiVersion: 'actorlet.dev/v1alpha1', kind: 'FaultScenario', metadata: { name } },
    spec: { faults: [{ name, ...fault }] },
  });
}

/** Injects, and says how that went. */
export function useInject(): {
  said: string;
  inject(what: string, body: string): Promise<void>;
  cause(name: string, fault: object): Promise<void>;
} {
  const [said, setSaid] = useState('');
  const inject = async (what: string, body: string) => {
    setSaid(`${what} …`);
    const headers = { 'content-type': 'application/json', 'x-actorlet-token': token() };
    const answer = await fetch('/api/inject', { method: 'POST', headers, body }).catch(() => null);
    setSaid(answer === null ? 'The daemon does not answer.' : answer.ok ? `${what}: done` : await answer.text());
  };
  return { said, inject, cause: (name, fault) => inject(name, scenarioOf(name, fault)) };
}

/** What is injected now; who has the token may end it, and cause more. */
export function Faults() {
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
    <>
      {injected.length > 0 && (
        <Section title="Faults that are injected">
          <ul className="plain problems">
            {injected.map((i) => (
              <li key={i.id}>
                <i className="dot warn" /> <strong>{i.scenario}</strong>{' '}
                <span className="quiet">{`${i.description} ends in ${duration(i.endsInMs)}`}</span>{' '}
                {token() !== '' && (
                  <button type="button" onClick={() => void stop(i.id)}>
                    Stop
                  </button>
                )}
              </li>
            ))}
          </ul>
          <span role="status">{said}</span>
        </Section>
      )}
      {token() !== '' && <Presets onCaused={() => void look()} />}
    </>
  );
}

function Presets({ onCaused }: { onCaused(): void }) {
  const [chosen, setChosen] = useState(0);
  const { said, cause } = useInject();
  const preset = PRESETS[chosen];
  if (preset === undefined) return null;
  const name = preset.title.toLowerCase().replaceAll(/[^a-z0-9]+/g, '-');
  return (
    <Section title="Cause a fault" note="it ends by itself">
      <p className="bar">
        <select aria-label="A fault" value={chosen} onChange={(e) => setChosen(Number(e.target.value))}>
          {PRESETS.map((p, i) => (
            <option key={p.title} value={i}>
              {p.title}
            </option>
          ))}
        </select>
        <button type="button" onClick={() => void cause(name, preset.fault).then(onCaused)}>
          Inject
        </button>
        <span role="status" className="quiet">
          {said}
        </span>
      </p>
    </Section>
  );
}
