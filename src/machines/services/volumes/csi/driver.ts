/** What the cluster says of a CSI driver: an object of kind CSIDriver, and what its absence means. Pure. */
import { allocatablePeriodMs } from '../../../kube/read/csiDriver.ts';
import { isRecord } from '../../../shape/conform.ts';
import { listOf, partOf, textFieldsOf, textOf, textsOf } from '../../../shape/lenient.ts';

export interface DriverRules {
  attachRequired: boolean;
  podInfoOnMount: boolean;
  /** Its volumes can be mounted with an SELinux label. */
  seLinuxMount: boolean;
  fsGroupPolicy: 'None' | 'File' | 'ReadWriteOnceWithFSType';
  /** Null: the cluster has no object of that driver. */
  lifecycleModes: readonly string[] | null;
  requiresRepublish: boolean;
  tokens: readonly { audience: string; expirationSeconds: number }[];
  /** Tokens go with the secrets of a publish, which drivers do not log, and not with the attributes of the volume. */
  tokensInSecrets: boolean;
  /** How often the node asks it how many volumes it can take. Null: once. */
  allocatablePeriodMs: number | null;
}
/** API default of `expirationSeconds`. */
const TOKEN_SECONDS = 3_600;

export const NO_DRIVER_OBJECT: DriverRules = {
  attachRequired: true,
  podInfoOnMount: false,
  seLinuxMount: false,
  fsGroupPolicy: 'ReadWriteOnceWithFSType',
  lifecycleModes: null,
  requiresRepublish: false,
  tokens: [],
  tokensInSecrets: false,
  allocatablePeriodMs: null,
};

export function driverRules(object: unknown): DriverRules {
  const spec = partOf(object, 'spec');
  const modes = textsOf(spec.volumeLifecycleModes);
  const requests = listOf(spec.tokenRequests).filter(isRecord);
  return {
    attachRequired: spec.attachRequired !== false,
    podInfoOnMount: spec.podInfoOnMount === true,
    seLinuxMount: spec.seLinuxMount === true,
    fsGroupPolicy: spec.fsGroupPolicy === 'None' || spec.fsGroupPolicy === 'File' ? spec.fsGroupPolicy : 'ReadWriteOnceWithFSType',
    lifecycleModes: modes.length === 0 ? ['Persistent'] : modes,
    requiresRepublish: spec.requiresRepublish === true,
    tokensInSecrets: spec.serviceAccountTokenInSecrets === true,
    allocatablePeriodMs: allocatablePeriodMs(object),
    tokens: requests.map((r) => ({
      audience: textOf(r.audience),
      expirationSeconds: typeof r.expirationSeconds === 'number' ? r.expirationSeconds : TOKEN_SECONDS,
    })),
  };
}

/** gRPC code ResourceExhausted: the node has no room for another volume. */
const EXHAUSTED_CODE = 8;

export type Attachment =
  | { state: 'attached'; publishContext: Readonly<Record<string, string>> }
  /** `exhausted`: the node has no room for it. */
  | { state: 'waiting' | 'failed'; message: string; exhausted?: true };

/** Reads a VolumeAttachment. `handle`: the volume's, for people. */
export function attachmentOf(object: unknown, handle: string): Attachment {
  if (partOf(object, 'metadata').deletionTimestamp !== undefined) {
    return { state: 'failed', message: `volume attachment of ${handle} is being deleted` };
  }
  const status = partOf(object, 'status');
  if (status.attached === true) return { state: 'attached', publishContext: textFieldsOf(status.attachmentMetadata) };
  const { message, errorCode } = partOf(status, 'attachError');
  const exhausted = errorCode === EXHAUSTED_CODE ? { exhausted: true as const } : {};
  return typeof message === 'string'
    ? { state: 'failed', message: `volume ${handle} cannot be attached: ${message}`, ...exhausted }
    : { state: 'waiting', message: `volume ${handle} is not attached to this node yet` };
}
