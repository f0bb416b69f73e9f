/** What volumes of drivers need of the API, asked for each time: what a cache holds may be otherwise by now. */

import { apiView } from '../../../../machines/api/messages.ts';
import { fromBase64 } from '../../../../machines/data/base64.ts';
import { put } from '../../../../machines/data/own.ts';
import { failureText, type KubeRequest, type KubeResult, kubePath } from '../../../../machines/kube/request.ts';
import type { SecretRef } from '../../../../machines/pod/volumes/kinds/csi.ts';
import {
  type Attachment,
  attachmentOf,
  type DriverRules,
  driverRules,
  NO_DRIVER_OBJECT,
} from '../../../../machines/services/volumes/csi/driver.ts';
import { isRecord } from '../../../../machines/shape/conform.ts';
import { kubeClient } from '../../../api/client.ts';
import type { ActorCtx } from '../../../supervision/types.ts';

/** A volume that waits for an answer holds nobody else up; it is tried again. */
const TIMEOUT_MS = 10_000;
/** A driver object that was read counts for so long, as one that was listed does (`actors/api/csiNode.ts`). */
const READ_COUNTS_MS = 1_200_000;

/** Each rejects with what could not be had, and why; never with anything secret. */
export interface CsiApi {
  driver(name: string, signal: AbortSignal): Promise<DriverRules>;
  /** As they were listed or read last; else they are asked for. For a volume that stands, and is published again. */
  driverAsListed(name: string, signal: AbortSignal): Promise<DriverRules>;
  secret(ref: SecretRef, signal: AbortSignal): Promise<Record<string, string>>;
  attachment(id: string, handle: string, signal: AbortSignal): Promise<Attachment>;
  /** What the node's status says is attached. */
  attachedToNode(signal: AbortSignal): Promise<readonly string[]>;
}

export function csiApi(ctx: Pick<ActorCtx, 'ports' | 'registry' | 'signal'>, nodeName: () => string): CsiApi {
  const get = async (path: string, signal: AbortSignal): Promise<KubeResult & { request: KubeRequest }> => {
    const request: KubeRequest = { verb: 'GET', path };
    return { ...(await kubeClient(ctx).request(request, { timeoutMs: TIMEOUT_MS, signal })), request };
  };
  /** The object of a driver may come after the list that its registration led to. */
  const read = new Map<string, { rules: DriverRules; atMonoMs: number }>();
  const driver = async (name: string, signal: AbortSignal): Promise<DriverRules> => {
    const got = await get(kubePath.csiDriver(name), signal);
    if (got.ok || got.failure.code === 404) {
      const rules = got.ok ? driverRules(got.body) : NO_DRIVER_OBJECT;
      read.set(name, { rules, atMonoMs: ctx.ports.clock.monoMs() });
      return rules;
    }
    throw new Error(`it is not known what the cluster says of driver ${name}: ${failureText(got.request, got.failure)}`);
  };
  return {
    driver,
    async driverAsListed(name, signal) {
      const listed = ctx.registry.read(apiView.csiDrivers)?.value.get(name);
      if (listed !== undefined) return driverRules(listed);
      const known = read.get(name);
      const isRecent = known !== undefined && ctx.ports.clock.monoMs() < known.atMonoMs + READ_COUNTS_MS;
      return isRecent ? known.rules : driver(name, signal);
    },
    async secret(ref, signal) {
      const got = await get(kubePath.secret(ref.namespace, ref.name), signal);
      const because = (why: string) => new Error(`failed to get secret ${ref.namespace}/${ref.name} for the driver: ${why}`);
      if (!got.ok) throw because(failureText(got.request, got.failure));
      const data = isRecord(got.body) && isRecord(got.body.data) ? got.body.data : {};
      const values: Record<string, string> = {};
      for (const [key, value] of Object.entries(data)) {
        if (typeof value !== 'string') throw because(`its key ${key} holds no text`);
        put(
          values,
          key,
          decodeBase64(value, () => because(`its key ${key} is not base64`)),
        );
      }
      return values;
    },
    async attachment(id, handle, signal) {
      const got = await get(kubePath.volumeAttachment(id), signal);
      if (got.ok) return attachmentOf(got.body, handle);
      if (got.failure.code === 404) return { state: 'waiting', message: `there is no volume attachment ${id} for volume ${handle} yet` };
      throw new Error(failureText(got.request, got.failure));
    },
    async attachedToNode(signal) {
      const got = await get(kubePath.node(nodeName()), signal);
      if (!got.ok) throw new Error(failureText(got.request, got.failure));
      const status = isRecord(got.body) && isRecord(got.body.status) ? got.body.status : {};
      const list = Array.isArray(status.volumesAttached) ? status.volumesAttached : [];
      return list.flatMap((v) => (isRecord(v) && typeof v.name === 'string' ? [v.name] : []));
    },
  };
}

function decodeBase64(value: string, failed: () => Error): string {
  const bytes = fromBase64(value);
  if (bytes === null) throw failed();
  return new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes);
}
