/** What the cluster says of a CSI driver: an object of kind CSIDriver, and what its absence means. Pure. */
import { isKubeRecord as isRecord } from '../../../kube/request.ts';

export interface DriverRules {
  attachRequired: boolean;
  podInfoOnMount: boolean;
  fsGroupPolicy: 'None' | 'File' | 'ReadWriteOnceWithFSType';
  /** Null: the cluster has no object of that driver. */
  lifecycleModes: readonly string[] | null;
  requiresRepublish: boolean;
  tokens: readonly { audience: string; expirationSeconds: number }[];
  /** Tokens go with the secrets of a publish, which drivers do not log, and not with the attributes of the volume. */
  tokensInSecrets: boolean;
}
/** API default of `expirationSeconds`. */
const TOKEN_SECONDS = 3_600;

export const NO_DRIVER_OBJECT: DriverRules = {
  attachRequired: true,
  podInfoOnMount: false,
  fsGroupPolicy: 'ReadWriteOnceWithFSType',
  lifecycleModes: null,
  requiresRepublish: false,
  tokens: [],
  tokensInSecrets: false,
};

export function driverRules(object: unknown): DriverRules {
  const spec = isRecord(object) && isRecord(object.spec) ? object.spec : {};
  const modes = Array.isArray(spec.volumeLifecycleModes) ? spec.volumeLifecycleModes.filter((m) => typeof m === 'string') : [];
  const requests = Array.isArray(spec.tokenRequests) ? spec.tokenRequests.filter(isRecord) : [];
  return {
    attachRequired: spec.attachRequired !== false,
    podInfoOnMount: spec.podInfoOnMount === true,
    fsGroupPolicy: spec.fsGroupPolicy === 'None' || spec.fsGroupPolicy === 'File' ? spec.fsGroupPolicy : 'ReadWriteOnceWithFSType',
    lifecycleModes: modes.length === 0 ? ['Persistent'] : modes,
    requiresRepublish: spec.requiresRepublish === true,
    tokensInSecrets: spec.serviceAccountTokenInSecrets === true,
    tokens: requests.map((r) => ({
      audience: typeof r.audience === 'string' ? r.audience : '',
      expirationSeconds: typeof r.expirationSeconds === 'number' ? r.expirationSeconds : TOKEN_SECONDS,
    })),
  };
}

export type Attachment =
  | { state: 'attached'; publishContext: Readonly<Record<string, string>> }
  | { state: 'waiting' | 'failed'; message: string };

/** Reads a VolumeAttachment. `handle`: the volume's, for people. */
export function attachmentOf(object: unknown, handle: string): Attachment {
  const part = (value: unknown, key: string): Record<string, unknown> => {
    const found = isRecord(value) ? value[key] : undefined;
    return isRecord(found) ? found : {};
  };
  if (part(object, 'metadata').deletionTimestamp !== undefined) {
    return { state: 'failed', message: `volume attachment of ${handle} is being deleted` };
  }
  const status = part(object, 'status');
  if (status.attached === true) {
    const metadata = Object.entries(part(status, 'attachmentMetadata'));
    return {
      state: 'attached',
      publishContext: Object.fromEntries(metadata.filter((e): e is [string, string] => typeof e[1] === 'string')),
    };
  }
  const { message } = part(status, 'attachError');
  return typeof message === 'string'
    ? { state: 'failed', message: `volume ${handle} cannot be attached: ${message}` }
    : { state: 'waiting', message: `volume ${handle} is not attached to this node yet` };
}
