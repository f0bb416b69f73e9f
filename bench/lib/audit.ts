/** The API server's audit log of one node: which requests it made about which pod. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

interface Entry {
  verb: string;
  user: { username: string };
  objectRef?: { resource: string; subresource?: string; name?: string; namespace?: string };
  requestReceivedTimestamp: string;
  stageTimestamp: string;
}

/** One finished request of the node. Times are wall milliseconds at the server. */
export interface NodeCall {
  verb: string;
  /** `pods/status`, for example. */
  resource: string;
  name: string;
  receivedMs: number;
  doneMs: number;
}

export interface Audit {
  /** For kube-apiserver. */
  readonly flags: readonly string[];
  calls(): NodeCall[];
  /** Reads and writes of single pods and of their status, by which a status gets to the server. */
  statusCalls(): NodeCall[];
  remove(): void;
}

const STATUS_RESOURCES = ['pods', 'pods/status'];
const STATUS_VERBS = ['get', 'patch', 'update'];

/** Metadata of every finished request of one user, by default the node's; nothing of anybody else's. */
export function createAudit(nodeName: string, user = `system:node:${nodeName}`): Audit {
  const dir = mkdtempSync(join(tmpdir(), 'actorlet-bench-audit-'));
  const [policy, log] = [join(dir, 'policy.json'), join(dir, 'audit.log')];
  const rules = [{ level: 'Metadata', users: [user] }, { level: 'None' }];
  writeFileSync(
    policy,
    JSON.stringify({ apiVersion: 'audit.k8s.io/v1', kind: 'Policy', omitStages: ['RequestReceived', 'ResponseStarted'], rules }),
  );
  const calls = (): NodeCall[] => {
    const lines = readFileSync(log, { encoding: 'utf8', flag: 'a+' }).split('\n');
    // The last line may still be being written.
    return lines.slice(0, -1).map((line) => {
      const { verb, objectRef, requestReceivedTimestamp, stageTimestamp } = JSON.parse(line) as Entry;
      return {
        verb,
        resource: [objectRef?.resource, objectRef?.subresource].filter((part) => part !== undefined).join('/'),
        name: objectRef?.name ?? '',
        receivedMs: Date.parse(requestReceivedTimestamp),
        doneMs: Date.parse(stageTimestamp),
      };
    });
  };
  return {
    flags: [`--audit-policy-file=${policy}`, `--audit-log-path=${log}`],
    calls,
    statusCalls: () => calls().filter((c) => STATUS_RESOURCES.includes(c.resource) && STATUS_VERBS.includes(c.verb)),
    remove: () => rmSync(dir, { recursive: true, force: true }),
  };
}
