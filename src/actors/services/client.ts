/** What workers ask of the services layer for one container: environment from the API, and pull credentials. Holds nothing. */

import type { ApiObject, ObjectResult, TokenRequest } from '../../machines/kube/objects.ts';
import type { Container } from '../../machines/kube/podTable.ts';
import { failureText, isKubeObject, kubePath } from '../../machines/kube/request.ts';
import type { Pod } from '../../machines/kube/types.ts';
import { isOfApi } from '../../machines/pod/phase.ts';
import { serviceVariables } from '../../machines/pod/serviceEnv.ts';
import { containerReferences, pullSecretNames, refKey } from '../../machines/pod/volumes/references.ts';
import type { EnvSources } from '../../machines/pods/workers/config/env.ts';
import { type Built, built, refused } from '../../machines/result.ts';
import { type PullCredentials, type PullSecret, pullCredentials } from '../../machines/runtime/imagePuller/keyring.ts';
import { servicesView } from '../../machines/services/objects/messages.ts';
import { textFieldsOf } from '../../machines/shape/lenient.ts';
import { kubeClient } from '../api/client.ts';
import type { ActorCtx, Registry } from '../supervision/types.ts';
import { objectSource } from './objects/source.ts';
import { createVolumeUsage, type VolumeUsageOptions, type VolumeUsageSource } from './volumes/usage.ts';

export type { VolumeUsageOptions, VolumeUsageSource };

/** The first list of services is there within moments of a start; a container that cannot wait longer is tried again. */
const SERVICES_WAIT_MS = 5_000;
const ACCOUNT_TIMEOUT_MS = 30_000;

type Ctx = Pick<ActorCtx, 'ports' | 'registry'>;

/** Undefined in standalone mode. */
export async function envSources(
  ctx: Ctx,
  { pod, container }: { pod: Pod; container: Container },
  signal: AbortSignal,
): Promise<Built<EnvSources | undefined>> {
  if (ctx.ports.kube === undefined) return built(undefined);
  if (isOfApi(pod)) await servicesKnown(ctx, signal);
  const services = ctx.registry.read(servicesView)?.value;
  // Static pods may be what the API server itself runs in: they wait for nobody.
  if (services === undefined && isOfApi(pod)) return refused('services have not yet been read at least once, cannot construct envvars');
  const { namespace } = pod.metadata;
  const variables = serviceVariables(services ?? [], { namespace, links: pod.spec.enableServiceLinks !== false });
  const source = objectSource(ctx);
  const refs = containerReferences(container, namespace);
  const answers = await Promise.all(
    refs.map(
      (ref): Promise<ObjectResult<ApiObject>> =>
        ref.kind === 'secret' ? source.secret(pod, ref.name, signal) : source.configMap(pod, ref.name, signal),
    ),
  );
  const objects = new Map(refs.map((ref, i) => [refKey(ref), answers[i] ?? { kind: 'failed' as const, message: 'no answer' }]));
  return built({ services: variables, objects });
}

async function servicesKnown({ ports, registry }: Ctx, signal: AbortSignal): Promise<void> {
  if (registry.read(servicesView) !== undefined || signal.aborted) return;
  const over = Promise.withResolvers<void>();
  const end = (): void => over.resolve();
  using _ = registry.watch(servicesView, end);
  const timer = ports.clock.setTimeout(end, SERVICES_WAIT_MS);
  signal.addEventListener('abort', end, { once: true });
  try {
    await over.promise;
  } finally {
    ports.clock.clearTimeout(timer);
    signal.removeEventListener('abort', end);
  }
}

/** `missing`: pull secrets that could not be had; the image may be public all the same. */
export async function credentialsFor(
  ctx: { ports: Ctx['ports']; registry: Registry },
  { pod, image }: { pod: Pod; image: string },
  signal: AbortSignal,
): Promise<{ credentials: PullCredentials; missing: readonly string[] }> {
  const names = ctx.ports.kube === undefined || !isOfApi(pod) ? [] : pullSecretNames(pod);
  const source = objectSource(ctx);
  const results = await Promise.all(names.map((name) => source.secret(pod, name, signal)));
  const found: PullSecret[] = [];
  const missing: string[] = [];
  results.forEach((result, i) => {
    const name = names[i] ?? '';
    if (result.kind === 'found') found.push({ namespace: pod.metadata.namespace, name, secret: result.value });
    else missing.push(name);
  });
  const reading = pullCredentials(found, image);
  for (;;) {
    const step = reading.next();
    if (step.done === true) return { credentials: step.value, missing: missing.sort() };
    await new Promise<void>((resolve) => ctx.ports.yield.defer(resolve));
  }
}

/** What volumes of pods use. The caller keeps it. */
export function volumeUsage(
  ctx: Pick<ActorCtx, 'ports' | 'registry' | 'log' | 'signal' | 'publish'>,
  o: VolumeUsageOptions,
): VolumeUsageSource {
  return createVolumeUsage(ctx, o);
}

/** The service account, in the pod's namespace. '' = it has none: what is not of the API is nobody there. */
export function serviceAccountOf(pod: Pod): string {
  return isOfApi(pod) ? (pod.spec.serviceAccountName ?? '') : '';
}

/** Service accounts, and tokens of them for pods of this node. Never rejects. */
export interface AccountSource {
  account(
    of: { namespace: string; name: string },
    signal: AbortSignal,
  ): Promise<ObjectResult<{ uid: string; annotations: Readonly<Record<string, string>> }>>;
  token(request: TokenRequest, signal: AbortSignal): Promise<ObjectResult<{ token: string }>>;
}

/** Null in standalone mode. */
export function accountSource(ctx: Pick<ActorCtx, 'ports' | 'registry' | 'signal'>): AccountSource | null {
  if (ctx.ports.kube === undefined) return null;
  const client = kubeClient(ctx);
  return {
    async account({ namespace, name }, signal) {
      const path = kubePath.serviceAccount(namespace, name);
      const answer = await client.request({ verb: 'GET', path }, { signal, timeoutMs: ACCOUNT_TIMEOUT_MS });
      if (!answer.ok) return { kind: 'failed', message: failureText({ verb: 'GET', path }, answer.failure) };
      if (!isKubeObject(answer.body)) return { kind: 'failed', message: `GET ${path} was answered without a service account` };
      const { uid, annotations } = answer.body.metadata;
      return { kind: 'found', value: { uid: uid ?? '', annotations: textFieldsOf(annotations) } };
    },
    token: (request, signal) => objectSource(ctx).token(request, signal),
  };
}
