/** Gives volumes secrets, config maps and tokens: asks the actors beside this file by message. Holds nothing. */

import { type ApiObject, isConfigMap, type ObjectResult, type ObjectSource, type TokenRequest } from '../../../machines/kube/objects.ts';
import type { Pod } from '../../../machines/kube/types.ts';
import type { ObjectRef } from '../../../machines/pod/volumes/references.ts';
import { objectsAddr } from '../../../machines/services/objects/messages.ts';
import type { Answer, Message, ReplyTo } from '../../../machines/supervision/address.ts';
import type { ActorCtx } from '../../supervision/types.ts';

/** Somewhat more than the longest request behind an answer. */
const ANSWER_MS = 40_000;

export function objectSource<E extends Message>(ctx: Pick<ActorCtx<E>, 'registry'>): Omit<ObjectSource, 'trustAnchors' | 'podCertificate'> {
  const { registry } = ctx;
  const get = async (pod: Pod, ref: ObjectRef, signal: AbortSignal): Promise<ObjectResult<ApiObject>> =>
    settle(
      await registry.ask(
        objectsAddr.objects,
        (replyTo: ReplyTo<ObjectResult<ApiObject>>) => ({ type: 'object.get' as const, pod, ref, replyTo }),
        { timeoutMs: ANSWER_MS, signal },
      ),
    );
  const refOf = (kind: ObjectRef['kind'], pod: Pod, name: string): ObjectRef => ({ kind, namespace: pod.metadata.namespace, name });
  return {
    async secret(pod, name, signal) {
      const result = await get(pod, refOf('secret', pod, name), signal);
      return result.kind !== 'found' ? result : isConfigMap(result.value) ? mistaken(name) : { kind: 'found', value: result.value };
    },
    async configMap(pod, name, signal) {
      const result = await get(pod, refOf('configMap', pod, name), signal);
      return result.kind !== 'found' ? result : isConfigMap(result.value) ? { kind: 'found', value: result.value } : mistaken(name);
    },
    async token(request: TokenRequest, signal) {
      return settle(
        await registry.ask(
          objectsAddr.tokens,
          (replyTo: ReplyTo<ObjectResult<{ token: string }>>) => ({ type: 'token.get' as const, request, replyTo }),
          { timeoutMs: ANSWER_MS, signal },
        ),
      );
    },
    forget: (uid) => void registry.send(objectsAddr.tokens, { type: 'token.forget', uid }),
  };
}

function mistaken(name: string): ObjectResult<never> {
  return { kind: 'failed', message: `object "${name}" is not of the kind that was asked for` };
}

function settle<T>(answer: Answer<ObjectResult<T>>): ObjectResult<T> {
  if (answer.kind === 'reply') return answer.value;
  return { kind: 'failed', message: `nobody answered for the objects of the API: ${answer.reason}; it is asked again` };
}
