/** Why a node is as it is: what `actorctl why node` prints. Pure. */
import { AWAITING_REASONS } from '../../api/messages.ts';
import type { ActorView } from '../../supervision/actorState.ts';
import { shortDuration } from '../../text/duration.ts';
import { printable } from '../../text/table.ts';
import type { Explanation } from '../answers.ts';
import type { NodeFactsPage } from '../nodePage.ts';
import { treeHealth } from '../treeHealth.ts';

/** Actors and pods named at most. */
const NAMED_MAX = 12;

export interface WhyNodeInput {
  known: NodeFactsPage;
  state: ActorView;
  /** By path of an actor: what it works with and cannot reach. */
  lost: ReadonlyMap<string, string>;
  /** Sources that cannot be read, in words. */
  sourceErrors: readonly string[];
  /** Volumes that cannot be set up or taken down, in words. */
  volumes?: readonly string[];
  nowMs: number;
}

export function explainNode({ known, state, lost, sourceErrors, volumes = [], nowMs }: WhyNodeInput): Explanation {
  const { runtime, api } = known;
  const unwell = treeHealth(state, lost).filter((h) => !h.ok);
  const pending = known.pods.filter((p) => p.phase === 'Pending');
  const failed = known.pods.filter((p) => p.phase === 'Failed');
  const ready = runtime.ready && runtime.networkReady;
  const away = runtime.ready ? `the network of ${runtime.name} is not ready` : 'the runtime does not answer or is not ready';
  const notReady = ready ? [] : [`${away}${runtime.reason === '' ? '' : `: ${runtime.reason}`}`];
  const lines = [
    `Node ${known.name}  ${known.version}, up ${shortDuration(nowMs - known.startedAtMs)}`,
    `  ready    ${ready ? 'yes' : `no: ${notReady.join()}`}`,
    `  runtime  ${runtime.name === '' ? 'not reached yet' : `${runtime.name} ${runtime.version}`}${ready && runtime.reason !== '' ? `: ${runtime.reason}` : ''}`,
    `  API      ${api === null ? 'none: a standalone node' : `${api.server} ${api.state} for ${shortDuration(nowMs - api.sinceMs)}${api.reason === '' ? '' : `: ${api.reason}`}`}`,
    `  pressure ${known.pressures.length === 0 ? 'none' : `${known.pressures.join(', ')}: no new pods of the lowest class are admitted`}`,
    `  pods     ${known.pods.length}, ${pending.length} Pending, ${failed.length} Failed`,
    ...named(
      'Not running',
      [...failed, ...pending].map((p) => `${p.namespace}/${p.name}: ${p.phase} (actorctl why ${p.namespace}/${p.name})`),
    ),
    ...named('Volumes', volumes),
    ...named('Sources', sourceErrors),
    ...named('Waiting for the API server', awaiting(state)),
    ...named(
      'Not well',
      unwell.map((h) => `${h.path}: ${h.reason}`),
    ),
  ];
  const node = {
    name: known.name,
    ready,
    problems: [...notReady, ...lost.values(), ...sourceErrors, ...awaiting(state)],
    pressures: [...known.pressures],
    pods: [...failed, ...pending].map((p) => `${p.namespace}/${p.name}`),
    unwell,
  };
  return { found: true, lines: lines.map(printable), node };
}

/** Actors that have asked the API server for all objects of their kind, and do not have them yet. */
function awaiting(actor: ActorView): string[] {
  const own = AWAITING_REASONS.includes(actor.reason) ? [`${actor.path}: ${actor.message}`] : [];
  return [...own, ...actor.children.flatMap(awaiting)];
}

function named(title: string, items: readonly string[]): string[] {
  if (items.length === 0) return [];
  const more = items.length - NAMED_MAX;
  return [title, ...items.slice(0, NAMED_MAX).map((item) => `  ${item}`), ...(more > 0 ? [`  and ${more} more`] : [])];
}
