/** The pod of an id that no listing has shown yet: one question to the runtime instead of a whole listing. */
import { CRI_LABELS } from '../../../machines/wire/cri.ts';
import { CriError } from '../../../ports/ports.ts';
import type { CriClient } from '../client.ts';

const NOT_FOUND = 5;
const TIMEOUT_MS = 10_000;

async function orNotFound<T>(question: Promise<T>): Promise<T | undefined> {
  try {
    return await question;
  } catch (error) {
    if (error instanceof CriError && error.code === NOT_FOUND) return undefined;
    throw error;
  }
}

/** Pod UID of a container or sandbox; undefined when the runtime knows neither (or neither is a pod's). @throws CriError */
export async function podUidOf(cri: CriClient, id: string, signal: AbortSignal): Promise<string | undefined> {
  const o = { timeoutMs: TIMEOUT_MS, signal };
  const container = await orNotFound(cri.read('ContainerStatus', { containerId: id }, o));
  if (container?.status) return container.status.labels[CRI_LABELS.podUid];
  const sandbox = await orNotFound(cri.read('PodSandboxStatus', { podSandboxId: id }, o));
  return sandbox?.status?.metadata?.uid;
}
