/** The PodResources port: the socket at which monitoring agents ask which devices and CPUs containers hold. */
import type { HeldResources } from '../../machines/allocation/messages.ts';
import type { PodResources } from '../../machines/edge/podResources.ts';
import type { Listening } from '../listening.ts';

/** Each is called once per request. What it throws, the caller is told. */
export interface PodResourcesAnswers {
  /** False: too many ask. The caller is told to try again. */
  admit(): boolean;
  list(api: 'v1' | 'v1alpha1'): readonly PodResources[];
  allocatable(): HeldResources;
  get(pod: { namespace: string; name: string }): PodResources;
}

export interface PodResourcesPort {
  /** Listens at this path, where nothing may be. Rejects with the error of binding. */
  serve(socketPath: string, answers: PodResourcesAnswers): Promise<Listening>;
}
