/** `actorctl restart pod`: the daemon ends containers of a pod and starts others in their place. */
import { setTimeout as sleep } from 'node:timers/promises';
import { CtlError, EXIT } from '@actorlet/admin/src/client.ts';
import type { ContainerStatus, PodStatus } from '@actorlet/kubelet/machines/kube/types.ts';
import type { RestartedContainer, RestartedPod } from '@actorlet/kubelet/machines/pod/restart/asked.ts';
import { printable } from '@actorlet/kubelet/machines/text/table.ts';
import type { PodSummary } from '@actorlet/shown/src/pods/podSummary.ts';
import { type Asked, type Command, printNames } from '../../asked.ts';
import { named, uidOf } from '../show/show.ts';

export interface RestartArgs {
  /** Never empty. */
  names: readonly string[];
  /** '': all that may start again. */
  container: string;
  wait: boolean;
  timeoutMs: number;
}
/** Between two looks at a pod that restarts. */
const LOOK_MS = 500;
/** A container that waits for one of these is on its way. */
const ON_ITS_WAY = new Set(['ContainerCreating', 'PodInitializing', undefined]);

type Restarting = Extract<RestartedPod, { ok: true }>;
interface Listed {
  uid: string;
  pod?: { status?: PodStatus };
}

/** Nothing restarts unless each of the names can. */
export function restartPods(args: RestartArgs): Command {
  return async (asked) => {
    const { pods } = (await asked.client.json('/pods')) as { pods: readonly PodSummary[] };
    const uids = [...new Set(args.names.map((name) => uidOf(named(name, asked), pods)))];
    const answered = await ask(asked, { pods: uids, container: args.container });
    const restarting = answered.filter((pod) => pod.ok);
    for (const pod of restarting) tell(pod, asked, args.wait);
    const deadlineMs = asked.io.nowMs() + args.timeoutMs;
    const bad: string[] = answered.flatMap((pod) => (pod.ok ? [] : [`${whoOf(pod)} is not restarted: ${printable(pod.why)}`]));
    if (args.wait) for (const pod of restarting) bad.push(...(await restarted(pod, { asked, deadlineMs })));
    if (bad.length > 0) throw new CtlError(EXIT.no, bad.join('\n'));
    return EXIT.ok;
  };
}

async function ask({ client }: Asked, wish: { pods: readonly string[]; container: string }): Promise<readonly RestartedPod[]> {
  try {
    return ((await client.post('/restart', wish)) as { pods: readonly RestartedPod[] }).pods;
  } catch (error) {
    if (error instanceof CtlError && error.status === 409) throw new CtlError(EXIT.no, printable(error.message), 409);
    if (error instanceof CtlError && error.status === 404 && /page not found/i.test(error.message))
      throw new CtlError(EXIT.failed, 'this daemon is older than actorctl and restarts no pods.', 404);
    throw error;
  }
}

function whoOf({ namespace, name }: { namespace: string; name: string }): string {
  return printable(`pod ${namespace}/${name}`);
}

function tell(pod: Restarting, asked: Asked, wait: boolean): void {
  const { io } = asked;
  for (const { name, why } of pod.left) io.err(`${whoOf(pod)}: container ${printable(name)} is left as it is: ${printable(why)}\n`);
  if (asked.format === 'name') printNames(asked, 'pod', [pod.name]);
  else if (!wait) io.out(`pod "${printable(pod.name)}" is restarting in ${printable(pod.namespace)} namespace\n`);
}

/** Waits until each container that restarts has a new instance. What is wrong with those. */
async function restarted(pod: Restarting, { asked, deadlineMs }: { asked: Asked; deadlineMs: number }): Promise<string[]> {
  const { io, client } = asked;
  const who = whoOf(pod);
  const why = `actorctl why ${printable(`${pod.namespace}/${pod.name}`)}`;
  for (;;) {
    const answer = (await client.json('/pods', { full: '', uid: pod.uid }).catch((error: unknown) => {
      if (!(error instanceof CtlError) || io.signal.aborted) throw error;
      throw new CtlError(error.exitCode, `${who} was to restart, and whether it did is not known: ${error.message}`);
    })) as { pods: readonly Listed[] };
    const status = answer.pods.find(({ uid }) => uid === pod.uid)?.pod?.status;
    if (status === undefined) return [`${who} is gone`];
    const looks = pod.containers.map((c) => ({ name: printable(c.name), ...lookAt(c, status) }));
    const waiting = looks.filter((c) => c.is === 'waiting');
    if (waiting.length === 0) {
      if (asked.format !== 'name') io.out(`pod "${printable(pod.name)}" restarted in ${printable(pod.namespace)} namespace\n`);
      return looks.flatMap((c) => (c.is === 'ended' ? [`${who}: container ${c.name} started and does not run (${c.why}): ${why}`] : []));
    }
    if (io.nowMs() >= deadlineMs) {
      const left = waiting.map((c) => `${c.name} (${c.why})`).join(', ');
      throw new CtlError(EXIT.failed, `${who} still restarts; these containers have not started again: ${left}: ${why}`);
    }
    await sleep(LOOK_MS, undefined, { signal: io.signal }).catch(() => undefined);
    if (io.signal.aborted) throw new CtlError(EXIT.interrupted, `interrupted; ${who} still restarts.`);
  }
}

function lookAt({ name, id }: RestartedContainer, status: PodStatus): { is: 'waiting' | 'running' | 'ended'; why: string } {
  const { initContainerStatuses: inits = [], containerStatuses: regular = [] } = status;
  const shown: ContainerStatus | undefined = [...inits, ...regular].find((c) => c.name === name);
  const why = printable(shown?.state.waiting?.reason ?? shown?.state.terminated?.reason ?? 'it still runs as before');
  const isNew = shown?.containerID !== undefined && (id === '' || !shown.containerID.endsWith(`://${id}`));
  if (!isNew) return { is: 'waiting', why };
  if (shown.state.running !== undefined) return { is: 'running', why: '' };
  return { is: shown.state.terminated === undefined && ON_ITS_WAY.has(shown.state.waiting?.reason) ? 'waiting' : 'ended', why };
}
