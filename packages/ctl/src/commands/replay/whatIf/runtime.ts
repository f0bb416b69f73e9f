/** The simulation's runtime in the place of the recorded one: containers live as long as they did, and end as they did. */
import { isRecord } from '@actorlet/kubelet/machines/shape/conform.ts';
import type { CriMethod, CriRequest, CriResponse } from '@actorlet/kubelet/machines/wire/criCalls.ts';
import { CRI_METHODS } from '@actorlet/kubelet/machines/wire/criMethods.ts';
import type { Clock, Cri } from '@actorlet/kubelet/ports/ports.ts';
import type { Otherwise } from '@actorlet/replay/src/lenient/lenient.ts';
import { createHollowRuntime, type HollowRuntime } from '@actorlet/runtimes/src/hollow/index.ts';
import { LoneChecks } from '@actorlet/sim/src/invariants/lone.ts';
import type { KnownRuntime, Life, Took } from './lives.ts';

export interface PlayedRuntime {
  readonly hollow: HollowRuntime;
  readonly checks: LoneChecks;
  readonly answers: Otherwise;
}

const forever = (): AbortSignal => new AbortController().signal;

export function playedRuntime(
  known: KnownRuntime,
  o: { clock: Clock; chance(): number; took: Took; touch(log: string): void },
): PlayedRuntime {
  const hollow = createHollowRuntime({
    ...{ clock: o.clock, rng: { next: o.chance }, images: known.images },
    latencyMs: (method) => o.took(`cri.call ${method}`),
    image: (name) => (known.missing.has(name) ? undefined : {}),
    script: ({ pod, name, attempt }) => lifeOf(known.lives.get(`${pod.uid} ${name}`) ?? [], attempt),
  });
  const checks = new LoneChecks(hollow, () => o.clock.monoMs());
  const ready = leave(hollow, known);
  /** Of containers, by id. */
  const logs = new Map<string, string>();
  const call: Cri['call'] = async (method, req, opts) => {
    await ready;
    const seen = { method, req, boot: 1 };
    const changes = CRI_METHODS[method].mutating;
    if (changes) checks.arrived(seen);
    try {
      const answer = await hollow.call(method, req, opts);
      if (method === 'CreateContainer') logs.set((answer as CriResponse<'CreateContainer'>).containerId, logOf(req));
      if (method === 'StartContainer') o.touch(logs.get((req as CriRequest<'StartContainer'>).containerId) ?? '');
      if (changes) checks.settled(seen, 'done');
      return answer;
    } catch (error) {
      if (changes) checks.settled(seen, 'failed');
      throw error;
    }
  };
  return {
    ...{ hollow, checks },
    answers(name, args) {
      if (name === 'cri.call') {
        const [method, req, opts] = args as [CriMethod, CriRequest<CriMethod>, Parameters<Cri['call']>[2]];
        return { result: call(method, req, opts) };
      }
      if (name === 'cri.hints') return { result: hollow.hints(args[0] as AbortSignal) };
      return name === 'cri.reconnect' || name === 'cri.close' ? { result: undefined } : undefined;
    },
  };
}

function logOf(req: unknown): string {
  const { config, sandboxConfig } = req as CriRequest<'CreateContainer'>;
  return `${sandboxConfig?.logDirectory ?? ''}/${config?.logPath ?? ''}`;
}

/** A later attempt lives like the last that is known. */
function lifeOf(lives: readonly Life[], attempt: number): Partial<Life> | undefined {
  const life = lives.find((one) => one.attempt === attempt) ?? lives.at(-1);
  if (life === undefined) return undefined;
  return life.runMs === null ? { runMs: null, startError: life.startError } : life;
}

/** Makes what was there before the daemon. Its ids are others. */
async function leave(hollow: HollowRuntime, { left }: KnownRuntime): Promise<void> {
  const sandboxes = new Map<unknown, { id: string; config: object }>();
  const opts = { timeoutMs: null, signal: forever() };
  for (const { kind, row } of left) {
    const { metadata, labels, annotations } = row;
    if (kind === 'sandbox') {
      const config = { metadata, labels, annotations, hostname: '', logDirectory: '', linux: {} };
      const { podSandboxId } = await hollow.call(
        'RunPodSandbox',
        { config, runtimeHandler: '' } as unknown as CriRequest<'RunPodSandbox'>,
        opts,
      );
      sandboxes.set(row.id, { id: podSandboxId, config });
      continue;
    }
    const sandbox = sandboxes.get(row.podSandboxId);
    const image = isRecord(row.image) ? { ...row.image, image: row.image.userSpecifiedImage ?? row.image.image } : { image: '' };
    if (sandbox === undefined) continue;
    await hollow.call('PullImage', { image } as unknown as CriRequest<'PullImage'>, opts).catch(() => {});
    const config = {
      metadata,
      labels,
      annotations,
      image,
      mounts: [],
      devices: [],
      envs: [],
      command: [],
      args: [],
      logPath: '',
      linux: {},
    };
    const req = { podSandboxId: sandbox.id, config, sandboxConfig: sandbox.config } as unknown as CriRequest<'CreateContainer'>;
    const { containerId } = await hollow.call('CreateContainer', req, opts);
    if (row.state !== 'CONTAINER_CREATED') await hollow.call('StartContainer', { containerId }, opts);
    if (row.state === 'CONTAINER_EXITED') hollow.exit(containerId, { exitCode: Number(row.exitCode ?? 0) });
  }
}
