/**
 * Which pod and container a CRI call is about. Requests name ids only; whose they are is learnt from the runtime's own
 * answers as they pass by, so nothing is asked of it that the node would not ask.
 */
import { CRI_LABELS, type PodSandboxConfig } from '@actorlet/kubelet/machines/wire/cri.ts';
import type { CriMethod, CriRequest, CriResponse } from '@actorlet/kubelet/machines/wire/criCalls.ts';

/** Unknown parts are absent. */
export interface CallSubject {
  namespace?: string;
  pod?: string;
  container?: string;
}

/** Ids remembered; beyond it everything is forgotten and learnt anew from the next listing. */
const IDS_MAX = 20_000;

/** A call's arguments, tied to its method so that a switch tells them apart. */
type AnyCall = { [M in CriMethod]: { method: M; req: CriRequest<M> } }[CriMethod];
type AnyAnswer = { [M in CriMethod]: { method: M; req: CriRequest<M>; res: CriResponse<M> } }[CriMethod];

export class CallSubjects {
  readonly #byId = new Map<string, CallSubject>();

  of<M extends CriMethod>(method: M, req: CriRequest<M>): CallSubject {
    const call = { method, req } as AnyCall;
    switch (call.method) {
      case 'RunPodSandbox':
        return ofSandbox(call.req.config);
      case 'CreateContainer':
        return { ...ofSandbox(call.req.sandboxConfig), ...named(call.req.config.metadata.name) };
      case 'PullImage':
        return call.req.sandboxConfig === undefined ? {} : ofSandbox(call.req.sandboxConfig);
      case 'StopPodSandbox':
      case 'RemovePodSandbox':
      case 'PodSandboxStatus':
      case 'PortForward':
      case 'UpdatePodSandboxResources':
      case 'PodSandboxStats':
        return this.#byId.get(call.req.podSandboxId) ?? {};
      case 'StartContainer':
      case 'StopContainer':
      case 'RemoveContainer':
      case 'ContainerStatus':
      case 'UpdateContainerResources':
      case 'CheckpointContainer':
      case 'ReopenContainerLog':
      case 'ExecSync':
      case 'Exec':
      case 'Attach':
      case 'ContainerStats':
        return this.#byId.get(call.req.containerId) ?? {};
      default:
        return {};
    }
  }

  /** From what the runtime answered. */
  learn<M extends CriMethod>(method: M, req: CriRequest<M>, res: CriResponse<M>): void {
    const answer = { method, req, res } as AnyAnswer;
    switch (answer.method) {
      case 'RunPodSandbox':
        this.#put(answer.res.podSandboxId, ofSandbox(answer.req.config));
        return;
      case 'CreateContainer':
        this.#put(answer.res.containerId, { ...ofSandbox(answer.req.sandboxConfig), ...named(answer.req.config.metadata.name) });
        return;
      case 'ListPodSandbox':
        for (const s of answer.res.items) this.#put(s.id, ofLabels(s.labels));
        return;
      case 'ListContainers':
        for (const c of answer.res.containers) this.#put(c.id, ofLabels(c.labels));
        return;
      case 'RemoveContainer':
        this.#byId.delete(answer.req.containerId);
        return;
      case 'RemovePodSandbox':
        this.#byId.delete(answer.req.podSandboxId);
        return;
    }
  }

  #put(id: string, subject: CallSubject): void {
    if (this.#byId.size >= IDS_MAX && !this.#byId.has(id)) this.#byId.clear();
    this.#byId.set(id, subject);
  }
}

function ofSandbox(config: PodSandboxConfig): CallSubject {
  return { namespace: config.metadata.namespace, pod: config.metadata.name };
}
const named = (container: string): CallSubject => ({ container });

function ofLabels(labels: Readonly<Record<string, string>>): CallSubject {
  const subject: CallSubject = {};
  const { [CRI_LABELS.podNamespace]: namespace, [CRI_LABELS.podName]: pod, [CRI_LABELS.containerName]: container } = labels;
  if (namespace !== undefined) subject.namespace = namespace;
  if (pod !== undefined) subject.pod = pod;
  if (container !== undefined) subject.container = container;
  return subject;
}
