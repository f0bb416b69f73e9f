/** Tells the runtime what a sandbox may have in all before its containers and its cgroup are changed. The runtime may refuse that. */

import type { Pod } from '../../../../machines/kube/types.ts';
import { overheadResources, type ResourceFacts, resizedSandbox } from '../../../../machines/pod/resources/resources.ts';
import type { Update } from '../../../../machines/pods/workers/resizeMachine.ts';
import type { CriFailure, CriResult } from '../../../../machines/runtime/cri/messages.ts';
import type { CriCall } from '../../../runtime/client.ts';

type Act = (call: CriCall) => Promise<CriResult>;

/** gRPC codes. */
const UNIMPLEMENTED = 12;
const UNKNOWN = 2;

export class SandboxResources {
  readonly #facts: () => ResourceFacts;
  /** What the runtime took last. */
  #taken = '';

  constructor(facts: () => ResourceFacts) {
    this.#facts = facts;
  }

  /** Tells the runtime of a resize. Null: the runtime takes it, or does not know the call. Else why the change is refused. */
  async tell({ pod, sandboxId, step }: Update, act: Act): Promise<string | null> {
    if (sandboxId === '') return null;
    const request = this.#request(pod, sandboxId);
    const key = JSON.stringify(request);
    if (key === this.#taken) return null;
    const result = await act({ method: 'UpdatePodSandboxResources', request });
    if (result.ok || isUnimplemented(result.error)) {
      this.#taken = key;
      return null;
    }
    return `failed to notify runtime for UpdatePodSandboxResources (resource=${step.resource}); resize rejected: ${result.error.details}`;
  }

  #request(pod: Pod, podSandboxId: string) {
    const facts = this.#facts();
    const overhead = overheadResources(pod, facts);
    return { podSandboxId, ...(overhead === undefined ? {} : { overhead }), resources: resizedSandbox(pod, facts) };
  }
}

/** containerd 2.2 says the second. */
function isUnimplemented({ code, details }: CriFailure): boolean {
  return code === UNIMPLEMENTED || (code === UNKNOWN && details.includes('not implemented'));
}
