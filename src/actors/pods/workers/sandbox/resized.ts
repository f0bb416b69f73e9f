/** Tells the runtime what a sandbox may have in all before its containers and its cgroup are changed. The runtime may refuse that. */

import type { Pod } from '../../../../machines/kube/types.ts';
import { overheadResources, type ResourceFacts, resizedSandbox } from '../../../../machines/pod/resources/resources.ts';
import type { Update } from '../../../../machines/pods/workers/resizeMachine.ts';
import type { CriFailure, CriResult } from '../../../../machines/runtime/cri/messages.ts';
import type { CriRequest } from '../../../../machines/wire/criCalls.ts';
import type { CriCall } from '../../../runtime/client.ts';

type Act = (call: CriCall) => Promise<CriResult>;

/** gRPC codes. */
const UNIMPLEMENTED = 12;
const UNKNOWN = 2;

export class SandboxResources {
  readonly #facts: () => ResourceFacts;
  /** What the runtime took last. */
  #taken: CriRequest<'UpdatePodSandboxResources'> | null = null;

  constructor(facts: () => ResourceFacts) {
    this.#facts = facts;
  }

  /** Of changes alone, as the kubelet. Null: the runtime takes it, or does not know the call. Else why the change is refused. */
  async tell({ pod, before, sandboxId }: Pick<Update, 'pod' | 'before' | 'sandboxId'>, act: Act): Promise<string | null> {
    if (sandboxId === '') return null;
    const request = this.#request(pod, sandboxId);
    const known = this.#taken?.podSandboxId === sandboxId ? this.#taken : this.#request(before, sandboxId);
    if (JSON.stringify(request) !== JSON.stringify(known)) {
      const result = await act({ method: 'UpdatePodSandboxResources', request });
      if (!result.ok && !isUnimplemented(result.error)) return result.error.details;
    }
    this.#taken = request;
    return null;
  }

  #request(pod: Pod, podSandboxId: string): CriRequest<'UpdatePodSandboxResources'> {
    const facts = this.#facts();
    const overhead = overheadResources(pod, facts);
    return { podSandboxId, ...(overhead === undefined ? {} : { overhead }), resources: resizedSandbox(pod, facts) };
  }
}

/** containerd 2.2 says the second. */
function isUnimplemented({ code, details }: CriFailure): boolean {
  return code === UNIMPLEMENTED || (code === UNKNOWN && details.includes('not implemented'));
}
