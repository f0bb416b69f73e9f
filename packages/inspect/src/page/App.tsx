import { useEffect, useState } from 'react';
import { EntryRow, Guard } from './bits.tsx';
import { go, hrefOf, type Route, readRoute, TABS, type Tab, useRoute } from './route.ts';
import { nowMs, type PageState, store, usePage } from './store.ts';
import { ActorPage } from './views/Actor.tsx';
import { Decisions } from './views/Decisions.tsx';
import { Events } from './views/Events.tsx';
import { Host } from './views/Host.tsx';
import { Kubelet } from './views/Kubelet.tsx';
import { Past } from './views/Past.tsx';
import { Pods } from './views/Pods.tsx';
import { Problems } from './views/Problems.tsx';
import { PodPage } from './views/pod/Pod.tsx';
import { Trace } from './views/Trace.tsx';
import { Tree } from './views/Tree.tsx';
import { duration, toneOf } from './words.ts';

const TITLES = {
  actors: 'Actors',
  pods: 'Pods',
  events: 'Events',
  trace: 'Trace',
  decisions: 'Decisions',
  host: 'Host',
  kubelet: 'Kubelet',
} as const;

export function App() {
  const state = usePage();
  const route = useRoute();
  useEffect(() => {
    const { tab, item } = route;
    store.watch({
      ...(tab === 'actors' && item !== '' ? { actor: item } : {}),
      ...(tab === 'pods' && item !== '' ? { pod: item } : {}),
      ...(tab === 'events' ? { events: true } : {}),
      ...(tab === 'decisions' ? { decisions: true } : {}),
      ...(tab === 'host' ? { host: true } : {}),
      ...(tab === 'kubelet' ? { kubelet: true } : {}),
    });
    document.title = `${state.hello?.node ?? 'actorlet'} · ${TITLES[tab].toLowerCase()}`;
  }, [route, state.hello?.node]);
  useShortcuts();
  return (
    <div className="app">
      <Header state={state} route={route} />
      <div className="notices">
        {state.link === 'lost' && (
          <p className="banner" role="status">
            {state.error !== ''
              ? `The recording in this page cannot be shown: ${state.error}`
              : state.hello?.recording === undefined
                ? 'The daemon does not answer; this is what was last known. Trying again.'
                : 'actorctl no longer serves this recording.'}
          </p>
        )}
        {state.hello?.recording !== undefined && <Past recording={state.hello.recording} atMs={state.atMs} steps={state.steps} />}
      </div>
      <main className={`view view-${route.tab} ${route.item === '' ? '' : 'has-item'}`}>
        <Guard at={`${route.tab} ${route.item}`}>
          <View state={state} route={route} />
        </Guard>
      </main>
    </div>
  );
}

function View({ state, route }: { state: PageState; route: Route }) {
  switch (route.tab) {
    case 'actors':
      return (
        <>
          <Tree state={state} selected={route.item} />
          {route.item === '' ? <Overview state={state} /> : <ActorPage key={route.item} state={state} path={route.item} />}
        </>
      );
    case 'pods':
      return route.item === '' ? <Pods state={state} /> : <PodPage key={route.item} state={state} uid={route.item} />;
    case 'events':
      return <Events state={state} />;
    case 'trace':
      return <Trace state={state} />;
    case 'decisions':
      return <Decisions state={state} />;
    case 'host':
      return <Host state={state} />;
    case 'kubelet':
      return <Kubelet state={state} />;
  }
}

function Header({ state, route }: { state: PageState; route: Route }) {
  const bad = state.problems?.count ?? 0;
  const recorded = state.hello?.recording !== undefined;
  return (
    <header className="masthead">
      <a className="brand" href={hrefOf('actors')}>
        <strong>actorlet</strong> <span className="quiet">{state.hello?.node ?? '…'}</span>
      </a>
      <nav aria-label="Views">
        {tabsOf(state).map((tab) => (
          <a key={tab} href={hrefOf(tab)} aria-current={route.tab === tab ? 'page' : undefined}>
            {TITLES[tab]}
            {tab === 'pods' && state.pods.size > 0 ? <span className="count">{state.pods.size}</span> : null}
          </a>
        ))}
      </nav>
      <span className={`link link-${state.link}`} role="status">
        <a href={hrefOf('actors')}>
          <i className={`dot ${state.link === 'live' && bad === 0 ? 'ok' : 'bad'}`} />
          {state.link === 'live'
            ? bad > 0
              ? `${bad} ${bad === 1 ? 'problem' : 'problems'}`
              : recorded
                ? 'recording'
                : 'live'
            : state.link}
        </a>
      </span>
    </header>
  );
}

/** No figures of a host are in a recording, and most nodes observe no kubelet. */
function tabsOf({ hello, problems }: PageState): readonly Tab[] {
  return TABS.filter((tab) => (tab !== 'host' || hello?.recording === undefined) && (tab !== 'kubelet' || problems?.kubelet !== undefined));
}

/** Actors that pass through their states every few seconds. */
const PASSES = /housekeeping|node\/runtime\/(pleg|cri)$/;

/** What the node is about, before an actor is chosen. */
function Overview({ state }: { state: PageState }) {
  const actors = [...state.actors.values()];
  const unwell = actors.filter((a) => !a.ok);
  const busiest = actors.filter((a) => (a.mail?.depth ?? 0) > 0).sort((a, b) => (b.mail?.depth ?? 0) - (a.mail?.depth ?? 0));
  const restarted = actors.filter((a) => a.restarts > 0).sort((a, b) => b.restarts - a.restarts);
  const pods = [...state.pods.values()];
  const running = pods.filter((p) => p.phase === 'Running' && p.ready === p.containers).length;
  const { hello } = state;
  return (
    <section className="detail" aria-label="Overview">
      <h1>{hello?.node ?? 'Connecting'}</h1>
      <p className="quiet">
        {hello === null ? '' : `${hello.version}, up ${duration(nowMs(state) - hello.startedAtMs)}`}
        {hello?.faultInjection ? ' · fault injection is on' : ''}
      </p>
      <dl className="facts">
        <div>
          <dt>Actors</dt>
          <dd>{actors.length}</dd>
        </div>
        <div>
          <dt>Actors not well</dt>
          <dd className={unwell.length > 0 ? 'tone-warn' : ''}>{unwell.length}</dd>
        </div>
        <div>
          <dt>Pods ready</dt>
          <dd>
            {running} of {pods.length}
          </dd>
        </div>
        <div>
          <dt>Container restarts</dt>
          <dd>{pods.reduce((n, p) => n + p.restarts, 0)}</dd>
        </div>
        <div>
          <dt>Actor restarts</dt>
          <dd>{actors.reduce((n, a) => n + a.restarts, 0)}</dd>
        </div>
      </dl>
      <Problems state={state} />
      <div className="wide-only">
        <Listed title="Mail waiting" empty="No message waits." rows={busiest.slice(0, 12)} say={(a) => `${a.mail?.depth ?? 0} waiting`} />
        <Listed
          title="Restarted actors"
          empty="No actor was restarted."
          rows={restarted.slice(0, 12)}
          say={(a) => `${a.restarts} times${a.error === '' ? '' : `: ${a.error}`}`}
        />
        <section>
          <h2>
            Just now <a href={hrefOf('trace')}>the whole trace</a>
          </h2>
          <ol className="plain entries stream">
            {state.events
              .filter((e) => e.kind !== 'message' && !PASSES.test(e.path))
              .slice(-14)
              .reverse()
              .map((e) => (
                <EntryRow key={e.n} e={e} withPath />
              ))}
          </ol>
        </section>
      </div>
      <p className="quiet keys">
        Keys: <kbd>1</kbd>–<kbd>{tabsOf(state).length}</kbd> views, <kbd>/</kbd> search, arrows in the tree, <kbd>Esc</kbd> back.
      </p>
    </section>
  );
}

function Listed(o: {
  title: string;
  empty: string;
  rows: readonly import('../feed/frames.ts').ActorRow[];
  say(a: import('../feed/frames.ts').ActorRow): string;
}) {
  return (
    <section>
      <h2>{o.title}</h2>
      {o.rows.length === 0 ? (
        <p className="quiet">{o.empty}</p>
      ) : (
        <ul className="plain">
          {o.rows.map((a) => (
            <li key={a.path}>
              <i className={`dot ${toneOf(a)}`} />
              <a href={hrefOf('actors', a.path)}>{a.name}</a> <span className="quiet">{o.say(a)}</span>
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}

/** By the address: a key may come before what it leads to is drawn. */
function leaveItem(): void {
  const { tab, item } = readRoute(location.hash);
  if (item !== '') go(tab);
}

function useShortcuts(): void {
  const [, redraw] = useState(0);
  useEffect(() => {
    const onKey = (e: KeyboardEvent) => {
      // A dialog has the keyboard to itself.
      if (document.querySelector('dialog[open]') !== null) return;
      const typing =
        e.target instanceof HTMLInputElement || e.target instanceof HTMLTextAreaElement || e.target instanceof HTMLSelectElement;
      if (e.key === 'Escape') {
        if (typing) (e.target as HTMLElement).blur();
        else leaveItem();
        return;
      }
      if (typing || e.ctrlKey || e.metaKey || e.altKey) return;
      const tab = tabsOf(store.state)[Number(e.key) - 1];
      if (tab !== undefined) go(tab);
      if (e.key === '/') {
        const search = document.querySelector<HTMLInputElement>('input[type=search]');
        if (search === null) return;
        e.preventDefault();
        search.focus();
      }
    };
    addEventListener('keydown', onKey);
    return () => removeEventListener('keydown', onKey);
  }, []);
  // Ages grow without a frame.
  useEffect(() => {
    const timer = setInterval(() => redraw((n) => n + 1), 1000);
    return () => clearInterval(timer);
  }, []);
}
