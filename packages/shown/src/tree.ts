/** The supervision tree as indented text: what `actorctl tree` and `/statez?text` print. Pure. */
import type { ActorView } from '@actorlet/kubelet/machines/supervision/actorState.ts';
import { shortDuration } from '@actorlet/kubelet/machines/text/duration.ts';
import { cutLine, printable } from '@actorlet/kubelet/machines/text/table.ts';

export interface TreeTextOptions {
  /** Long states are cut, so that the reason of each actor is still seen. Default false. */
  narrow?: boolean;
  /** Names of pods by UID: an actor that is named for a pod is shown under its name. */
  podNames?: ReadonlyMap<string, string>;
}
const NARROW_STATE_CHARS = 22;

interface Line {
  name: string;
  state: string;
  age: string;
  mail: string;
  restarts: string;
  why: string;
}

/** Head line, then one line per actor: name, state, age in it, mailbox depth, restarts, reason. */
export function renderTree(root: ActorView, opts: TreeTextOptions = {}): string[] {
  const lines: Line[] = [{ name: 'ACTOR', state: 'STATE', age: 'AGE', mail: 'MAIL', restarts: 'RESTARTS', why: 'REASON' }];
  const visit = (actor: ActorView, lead: string, branch: string, below: string) => {
    lines.push(describe(actor, lead + branch, opts));
    actor.children.forEach((child, i) => {
      const last = i === actor.children.length - 1;
      visit(child, lead + below, last ? '└─ ' : '├─ ', last ? '   ' : '│  ');
    });
  };
  visit(root, '', '', '');
  const width = (of: (l: Line) => string) => lines.reduce((most, l) => Math.max(most, of(l).length), 0);
  const w = [width((l) => l.name), width((l) => l.state), width((l) => l.age), width((l) => l.mail), width((l) => l.restarts)];
  return lines.map((l) =>
    [
      l.name.padEnd(w[0] ?? 0),
      l.state.padEnd(w[1] ?? 0),
      l.age.padStart(w[2] ?? 0),
      l.mail.padStart(w[3] ?? 0),
      l.restarts.padStart(w[4] ?? 0),
      l.why,
    ]
      .join('  ')
      .trimEnd(),
  );
}

function describe(actor: ActorView, lead: string, { narrow = false, podNames }: TreeTextOptions): Line {
  const last = actor.path.slice(actor.path.lastIndexOf('/') + 1);
  const name = podNames?.get(last) ?? last;
  const running = actor.lifecycle === 'running';
  const asleep = actor.lifecycle === 'asleep';
  const why = [actor.reason, actor.message].filter((s) => s !== '').join(': ');
  // The last error explains a state that is not the usual one; on a healthy actor it is history and `why` wins.
  const shown = running || asleep ? why : (actor.lastError ?? why);
  const state = running && actor.state !== '' ? actor.state : actor.lifecycle + (actor.state === '' ? '' : ` (${actor.state})`);
  return {
    name: lead + printable(name),
    state: cutLine(state, narrow ? NARROW_STATE_CHARS : 0),
    age: shortDuration(actor.asleepMs ?? actor.ageMs),
    mail: actor.mailbox === undefined ? '-' : `${actor.mailbox.depth}${actor.mailbox.suspended ? '!' : ''}`,
    restarts: String(actor.restarts),
    why: printable(shown),
  };
}
