/** CRI calls about pod sandboxes: rows alone, as pods are on the host's network. */
import { randomBytes } from 'node:crypto';
import type { PodSandboxConfig } from '@actorlet/kubelet/machines/wire/cri.ts';
import type { CriRequest, CriResponse } from '@actorlet/kubelet/machines/wire/criCalls.ts';
import { CODE, matchSandbox, RuntimeRefusal, sandboxItem, sandboxKey, sandboxStatus } from '../shared/model.ts';
import { checkSandbox } from './container/plan.ts';
import type { Isolation } from './probe.ts';
import type { State } from './store/state.ts';
import type { StoredSandbox } from './store/store.ts';
import type { Oci, ProcessHandlers } from './types.ts';

/** Pods are on the host's network; the loopback address reaches what they serve, whatever address they listen on. */
const POD_IP = '127.0.0.1';

export function sandboxHandlers(state: State, { isolation, oci }: { isolation: Isolation; oci?: Oci | undefined }) {
  /** A pod whose namespaces were ended from outside is not ready any more. */
  const seen = (s: StoredSandbox): StoredSandbox => {
    if (s.ready && oci?.isPodUp(s) === false) s.ready = false;
    return s;
  };
  const stop = (s: StoredSandbox): Promise<void> => stopPod(state, s, oci);
  return {
    RunPodSandbox: (req) => run(state, { isolation, oci }, req),
    StopPodSandbox: ({ podSandboxId }) =>
      state.queued(podSandboxId, async () => {
        const s = state.sandboxes.get(podSandboxId);
        if (s !== undefined) await stop(s);
        return {};
      }),
    RemovePodSandbox: ({ podSandboxId }) =>
      state.queued(podSandboxId, async () => {
        const s = state.sandboxes.get(podSandboxId);
        if (s === undefined) return {};
        await stop(s);
        for (const c of state.containersOf(s.id)) await state.forgetContainer(c);
        state.store.dropSandbox(s.id);
        state.sandboxes.delete(s.id);
        state.emit('deleted', s.id, s.id, s);
        return {};
      }),
    PodSandboxStatus: ({ podSandboxId }) => ({ status: sandboxStatus(seen(state.sandbox(podSandboxId))), info: {} }),
    ListPodSandbox: ({ filter }) => ({
      items: [...state.sandboxes.values()]
        .map(seen)
        .filter((s) => matchSandbox(s, filter))
        .map(sandboxItem),
    }),
  } satisfies Partial<ProcessHandlers>;
}

async function run(
  state: State,
  { isolation, oci }: { isolation: Isolation; oci?: Oci | undefined },
  req: CriRequest<'RunPodSandbox'>,
): Promise<CriResponse<'RunPodSandbox'>> {
  const { config, runtimeHandler } = req;
  const key = sandboxKey(config.metadata);
  if (runtimeHandler) throw new RuntimeRefusal(CODE.invalidArgument, `no runtime handler ${JSON.stringify(runtimeHandler)}`);
  if (state.starting.has(key)) throw new RuntimeRefusal(CODE.alreadyExists, `sandbox name ${key} is being made`);
  for (const s of state.sandboxes.values()) {
    if (sandboxKey(s.metadata) === key) throw new RuntimeRefusal(CODE.alreadyExists, `sandbox name ${key} is taken by ${s.id}`);
  }
  if (oci === undefined) checkSandbox(config, isolation);
  const asked = config.linux?.securityContext?.namespaceOptions;
  const s: StoredSandbox = {
    id: randomBytes(16).toString('hex'),
    metadata: config.metadata,
    labels: config.labels ?? {},
    annotations: config.annotations ?? {},
    runtimeHandler: '',
    ready: true,
    createdAtMs: state.stampMs(),
    ip: asked?.network === 'NODE' ? '' : POD_IP,
    // As asked, although every pod here shares the host's network: a node compares this with what it asked for.
    namespaces: { ...asked },
    hostname: config.hostname ?? '',
    logDirectory: config.logDirectory ?? '',
    ...(config.linux?.cgroupParent ? { cgroupParent: config.linux.cgroupParent } : {}),
  };
  if (oci === undefined) state.store.saveSandbox(s);
  else await startPod(state, { s, key, config, oci });
  state.sandboxes.set(s.id, s);
  state.emit('created', s.id, s.id);
  state.emit('started', s.id, s.id);
  return { podSandboxId: s.id };
}

async function startPod(state: State, o: { s: StoredSandbox; key: string; config: PodSandboxConfig; oci: Oci }): Promise<void> {
  const { s, key, config, oci } = o;
  state.starting.add(key);
  try {
    // On disk before anything runs: a runtime that is killed now leaves processes that the next one finds.
    state.store.saveSandbox({ ...s, ready: false });
    await oci.startPod(s, config, () => {
      if (state.sandboxes.get(s.id) === s) state.store.saveSandbox(s);
    });
    state.store.saveSandbox(s);
  } catch (error) {
    oci.stopPod(s);
    state.store.dropSandbox(s.id);
    throw error;
  } finally {
    state.starting.delete(key);
  }
}

async function stopPod(state: State, s: StoredSandbox, oci: Oci | undefined): Promise<void> {
  await Promise.all(state.containersOf(s.id).map((c) => c.stop(0)));
  oci?.stopPod(s);
  if (!s.ready) return;
  s.ready = false;
  state.store.saveSandbox(s);
  state.emit('stopped', s.id, s.id);
}
