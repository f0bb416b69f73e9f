/** The state of a hollow runtime as plain data, for checks. */
import type { Image } from '@actorlet/kubelet/machines/wire/cri.ts';
import type { Container, Sandbox, State } from './state.ts';
import type { HollowContainerDump, HollowDump, HollowSandboxDump } from './types.ts';

export function dump(state: State, images: readonly Image[]): HollowDump {
  return {
    sandboxes: [...state.sandboxes.values()].map(sandboxDump),
    containers: [...state.containers.values()].map((c) => containerDump(c, state.sandboxes.get(c.sandboxId))),
    images: images.flatMap((i) => i.repoTags),
    counts: { ...state.counts },
  };
}

function sandboxDump(s: Sandbox): HollowSandboxDump {
  return {
    id: s.id,
    uid: s.metadata.uid,
    name: s.metadata.name,
    namespace: s.metadata.namespace,
    attempt: s.metadata.attempt,
    ready: s.ready,
    ip: s.ip,
    createdAtMs: s.createdAtMs,
    ...(s.config.linux?.cgroupParent ? { cgroupParent: s.config.linux.cgroupParent } : {}),
  };
}

function containerDump(c: Container, sandbox: Sandbox | undefined): HollowContainerDump {
  return {
    id: c.id,
    sandboxId: c.sandboxId,
    podUid: sandbox?.metadata.uid ?? '',
    name: c.metadata.name,
    attempt: c.metadata.attempt,
    state: c.state,
    startedAtMs: c.startedAtMs,
    finishedAtMs: c.finishedAtMs,
    exitCode: c.exitCode,
    reason: c.reason,
    imageRef: c.imageRef,
    labels: c.labels,
    annotations: c.annotations,
    resources: c.resources,
  };
}
