/** What the rows of the runtime hold of OCI containers and their pods. */
import type { ProcId } from '../process/container/procfs.ts';

/** What a pod has before its containers. */
export interface Infra {
  /** Holds the pod's namespaces. */
  pause: ProcId;
  /** It has a PID namespace for all of the pod. */
  pid: boolean;
  /** The process of pasta or slirp4netns. */
  network: ProcId | null;
  /** Nameservers are replaced where the host's are on its loopback. */
  dns: string;
}

interface OciProcess {
  terminal: boolean;
  user: { uid: number; gid: number; additionalGids: number[] };
  args: string[];
  env: string[];
  cwd: string;
  [more: string]: unknown;
}
export interface OciSpec {
  process: OciProcess;
  [more: string]: unknown;
}
/** Plan of a container of an OCI image. */
export interface OciPlan {
  imageId: string;
  /** Null without limits. */
  cgroupsPath: string | null;
  /** With standard input or a terminal. `once`: the first client's input is all of it. */
  input?: { tty: boolean; once: boolean };
  /** What `exec` begins from. */
  process: OciProcess;
  /** Until it is written to its file. */
  spec?: OciSpec;
}
