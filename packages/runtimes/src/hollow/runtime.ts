/**
 * The hollow container runtime: CRI semantics without containers. It lives outside the node it serves, so a new node
 * can be booted on the same runtime as after a daemon's restart. Time and chance come from the ports given.
 *
 * It answers with objects it keeps (labels, annotations): callers treat CRI messages as immutable.
 */

import { messageOf } from '@actorlet/kubelet/machines/text/errors.ts';
import type { CriMethod, CriRequest, CriResponse } from '@actorlet/kubelet/machines/wire/criCalls.ts';
import type { Cri } from '@actorlet/kubelet/ports/ports.ts';
import { CODE, RuntimeRefusal } from '../shared/model.ts';
import { Containers } from './calls/containers.ts';
import { Images } from './calls/images.ts';
import { Sandboxes } from './calls/sandboxes.ts';
import { DESCRIPTORS, usedBy } from './calls/stats.ts';
import { createHollowClient } from './client.ts';
import { dump } from './dump.ts';
import { type Shared, State } from './state.ts';
import { Timing } from './timing.ts';
import type { HollowOptions, HollowRuntime } from './types.ts';

type Handlers = { [M in CriMethod]: (req: CriRequest<M>) => CriResponse<M> | Promise<CriResponse<M>> };

export function createHollowRuntime(options: HollowOptions): HollowRuntime {
  const state = new State();
  const timing = new Timing(options);
  const shared = { state, timing, options };
  const images = new Images(shared);
  const containers = new Containers(shared, images);
  const sandboxes = new Sandboxes(shared, containers);
  const handlers = handlersOf({ state, options, images, containers, sandboxes });

  async function run<M extends CriMethod>(method: M, req: CriRequest<M>): Promise<CriResponse<M>> {
    const delay = timing.wait(options.latencyMs?.(method) ?? 0);
    if (delay !== undefined) await delay;
    const handler: (req: CriRequest<M>) => CriResponse<M> | Promise<CriResponse<M>> = handlers[method];
    return handler(req);
  }

  const connect = (): Cri => createHollowClient({ clock: options.clock, run, streams: state.streams });
  const own = connect();
  return {
    call: own.call,
    hints: own.hints,
    reconnect: own.reconnect,
    close: own.close,
    connect,
    dump: () => dump(state, images.all()),
    used: () => usedBy(state.containers.values(), options.clock.wallMs()),
    exit(containerId, how) {
      const c = state.containers.get(containerId);
      if (c === undefined || c.state !== 'CONTAINER_RUNNING') return false;
      containers.end(c, how.exitCode, how.reason ?? '');
      return true;
    },
    setCondition(type, ok, reason) {
      state.conditions[type] = { ok, reason };
    },
    hold(pods) {
      for (const { containers: all } of pods) for (const c of all) state.took(c.id);
      return pods.flatMap((pod) => {
        try {
          const s = sandboxes.hold(pod);
          for (const c of pod.containers) containers.hold(s, c);
          return [];
        } catch (error) {
          return { pod, why: messageOf(error) };
        }
      });
    },
    dropStreams() {
      for (const s of [...state.streams]) s.end(new Error('the runtime closed the stream'));
    },
    dropCalls: () => timing.cut(),
  };
}

interface Parts extends Pick<Shared, 'state' | 'options'> {
  images: Images;
  containers: Containers;
  sandboxes: Sandboxes;
}

function handlersOf({ state, options, images, containers, sandboxes }: Parts): Handlers {
  return {
    Version: () => ({ version: '0.1.0', runtimeName: 'actorlet-hollow', runtimeVersion: '0.1.0', runtimeApiVersion: 'v1' }),
    Status: () => ({ status: { conditions: conditionsOf(state) }, info: {}, ...options.features }),
    RuntimeConfig: () => {
      const { cgroupDriver = 'CGROUPFS' } = options;
      if (cgroupDriver === null) throw new RuntimeRefusal(CODE.unimplemented, 'unknown method RuntimeConfig');
      return { linux: { cgroupDriver } };
    },
    UpdateRuntimeConfig: () => ({}),
    RunPodSandbox: (req) => sandboxes.run(req),
    StopPodSandbox: (req) => sandboxes.stop(req),
    RemovePodSandbox: (req) => sandboxes.remove(req),
    PodSandboxStatus: (req) => sandboxes.status(req),
    ListPodSandbox: (req) => sandboxes.list(req),
    UpdatePodSandboxResources: (req) => sandboxes.update(req),
    CreateContainer: (req) => containers.create(req),
    StartContainer: ({ containerId }) => containers.start(state.container(containerId)),
    StopContainer: ({ containerId, timeout }) => {
      const c = state.containers.get(containerId);
      return c === undefined ? {} : containers.stop(c, Number(timeout) * 1000);
    },
    RemoveContainer: (req) => containers.remove(req),
    ListContainers: (req) => containers.list(req),
    ContainerStatus: (req) => containers.status(req),
    UpdateContainerResources: (req) => containers.update(req),
    CheckpointContainer: ({ containerId }) => {
      state.container(containerId);
      throw new RuntimeRefusal(CODE.unimplemented, 'there is no process that could be written down');
    },
    ReopenContainerLog: ({ containerId }) => {
      state.running(containerId);
      return {};
    },
    ExecSync: (req) => containers.exec(req),
    Exec: ({ containerId, ...ask }) => containers.stream(containerId, ask),
    Attach: ({ containerId, ...ask }) => containers.stream(containerId, { ...ask, cmd: null }),
    PortForward: noStreaming,
    ContainerStats: (req) => containers.stats(req),
    ListContainerStats: (req) => containers.listStats(req),
    PodSandboxStats: ({ podSandboxId }) => ({ stats: containers.sandboxStats(state.sandbox(podSandboxId)) }),
    ListPodSandboxStats: () => ({
      stats: [...state.sandboxes.values()].filter((s) => s.ready).map((s) => containers.sandboxStats(s)),
    }),
    ListMetricDescriptors: () => ({ descriptors: DESCRIPTORS }),
    ListPodSandboxMetrics: () => ({ podMetrics: [...state.sandboxes.values()].map((s) => containers.sandboxMetrics(s)) }),
    ListImages: (req) => images.list(req),
    ImageStatus: (req) => images.status(req),
    PullImage: (req) => images.pull(req),
    RemoveImage: (req) => images.remove(req),
    ImageFsInfo: () => images.fsInfo(),
  };
}

function conditionsOf({ conditions }: State) {
  return (['RuntimeReady', 'NetworkReady'] as const).map((type) => ({
    type,
    status: conditions[type].ok,
    reason: conditions[type].reason,
    message: conditions[type].reason,
  }));
}

function noStreaming(): never {
  throw new RuntimeRefusal(CODE.unimplemented, 'the hollow runtime has no processes to stream to');
}
