/** What may follow the words of a command line, where a node knows it: pods, containers, actors, injections. */
import { adminClient } from '@actorlet/admin/src/client.ts';
import type { InjectionView } from '@actorlet/faults/src/live.ts';
import type { Pod } from '@actorlet/kubelet/machines/kube/types.ts';
import type { DeathHead } from '@actorlet/kubelet/machines/reclaim/deaths/messages.ts';
import { type ActorView, allPaths } from '@actorlet/kubelet/machines/supervision/actorState.ts';
import type { PodSummary } from '@actorlet/shown/src/pods/podSummary.ts';

/** A shell waits no longer for a node that does not answer. */
const WAIT_MS = 1_000;
/** Options before a command's words that take a value. */
const VALUED = new Set([
  '--socket',
  '--server',
  '--token-file',
  '--recording',
  '--at',
  '-o',
  '--output',
  '-n',
  '--namespace',
  '-l',
  '--selector',
  '-c',
  '--container',
  '--tail',
  '--since',
  '--limit',
  '--pod',
  '--format',
  '--kubeconfig',
  '--grace-period',
  '--timeout',
]);
const POD_COMMANDS = new Set(['why', 'timeline', 'logs', 'exec', 'events', 'deaths']);
const ACTOR_COMMANDS = new Set(['recorder', 'chart']);

type Kind = 'pods' | 'deaths' | 'containers' | 'namespaces' | 'actors' | 'injections' | 'killable' | readonly string[];

/** Null: no name of this node belongs here, so the commands and options do. */
export async function completions(
  words: readonly string[],
  socketOf: (flag: string | undefined) => string,
): Promise<readonly string[] | null> {
  const before = words.slice(0, -1);
  const current = words.at(-1) ?? '';
  if (before.includes('--') || (current.startsWith('-') && current !== '-')) return null;
  const said = plainWords(before);
  const kind = kindAfter(said, before.at(-1) ?? '');
  if (kind === null) return null;
  const names = typeof kind === 'string' ? await namesOf(kind, said, socketOf(optionOf(before, '--socket'))).catch(() => []) : kind;
  return names.filter((name) => name.startsWith(current));
}

function kindAfter([command = '', ...rest]: readonly string[], last: string): Kind | null {
  if (last === '-n' || last === '--namespace') return 'namespaces';
  if (last === '-c' || last === '--container') return 'containers';
  if (last === '--pod') return 'pods';
  if (VALUED.has(last)) return null;
  const [first, ...more] = rest;
  if (command === 'get' || command === 'describe') {
    if (first === undefined) return command === 'get' ? ['pods', 'events', 'node'] : ['pod', 'node'];
    return more.length === 0 && first !== 'node' ? 'pods' : null;
  }
  if (command === 'delete' || command === 'restart') return first === undefined ? ['pod'] : 'pods';
  if (command === 'top') return first === undefined ? ['pods', 'node'] : null;
  if (command === 'inject') {
    if (first === 'stop') return more.length === 0 ? 'injections' : null;
    if (first !== 'kill') return null;
    return more.length === 0 ? 'killable' : more[0] === 'pod' && more.length === 1 ? 'pods' : null;
  }
  if (first !== undefined) return null;
  if (command === 'death') return 'deaths';
  if (POD_COMMANDS.has(command)) return 'pods';
  return ACTOR_COMMANDS.has(command) ? 'actors' : null;
}

async function namesOf(kind: Extract<Kind, string>, said: readonly string[], socketPath: string): Promise<readonly string[]> {
  const client = adminClient(socketPath, AbortSignal.timeout(WAIT_MS));
  const pods = async () => ((await client.json('/pods')) as { pods: readonly PodSummary[] }).pods;
  const actors = async () => allPaths((await client.json('/statez')) as ActorView);
  switch (kind) {
    case 'pods':
      return [...namesOfPods(await pods()), ...(said[0] === 'why' ? ['node'] : [])];
    case 'deaths':
      return ((await client.json('/deaths')) as { deaths: readonly DeathHead[] }).deaths.map(({ id }) => id).toReversed();
    case 'namespaces':
      return [...new Set((await pods()).map((p) => p.namespace))];
    case 'actors':
      return actors();
    case 'killable':
      return ['pod', ...(await actors())];
    case 'injections':
      return ((await client.json('/inject')) as { injections: readonly InjectionView[] }).injections.map((i) => i.id);
    case 'containers': {
      const full = ((await client.json('/pods', { full: '' })) as { pods: readonly (PodSummary & { pod?: Pod })[] }).pods;
      const named = full.filter((p) => said.includes(p.name) || said.includes(`${p.namespace}/${p.name}`));
      return (named.length === 0 ? full : named).flatMap((p) => (p.pod?.spec.containers ?? []).map((c) => c.name));
    }
  }
}

/** By name alone where it tells one pod from all others. */
function namesOfPods(pods: readonly PodSummary[]): string[] {
  const times = new Map<string, number>();
  for (const { name } of pods) times.set(name, (times.get(name) ?? 0) + 1);
  return pods.map((p) => (times.get(p.name) === 1 ? p.name : `${p.namespace}/${p.name}`));
}

/** Without options and their values. */
function plainWords(words: readonly string[]): string[] {
  return words.filter((word, i) => !word.startsWith('-') && !VALUED.has(words[i - 1] ?? ''));
}

function optionOf(words: readonly string[], option: string): string | undefined {
  const given = words.find((w) => w.startsWith(`${option}=`));
  if (given !== undefined) return given.slice(option.length + 1);
  const at = words.indexOf(option);
  return at < 0 ? undefined : words[at + 1];
}
