/** What most files on a real cluster begin and end with. */
import { afterAll, beforeAll } from 'vitest';
import {
  createReferenceKubelet,
  REFERENCE_LOGS,
  type ReferenceKubelet,
  whyNoReferenceKubelet,
} from '../e2e/lab/cluster/referenceKubelet.ts';
import { type Cluster, type ClusterOptions, startCluster } from './cluster.ts';

export function onCluster(given: (cluster: Cluster) => unknown, o: ClusterOptions = {}): void {
  let cluster: Cluster | undefined;
  beforeAll(async () => {
    cluster = await startCluster(o);
    await given(cluster);
  });
  afterAll(() => cluster?.stop());
}

/** A cluster whose node the reference kubelet can take. Neither agent is started. Returns why the tests cannot run here. */
export function besideReference(
  given: (made: { cluster: Cluster; reference: ReferenceKubelet }) => unknown,
  unless?: () => string | undefined,
): string | undefined {
  const whyNot = whyNoReferenceKubelet() ?? unless?.();
  if (whyNot !== undefined) {
    console.warn(`not run: ${whyNot}`);
    return whyNot;
  }
  let cluster: Cluster | undefined;
  let reference: ReferenceKubelet | undefined;
  beforeAll(async () => {
    cluster = await startCluster({ start: false, config: { podLogsDir: REFERENCE_LOGS.podLogs } });
    reference = await createReferenceKubelet(cluster);
    await given({ cluster, reference });
  });
  afterAll(async () => {
    await reference?.end('SIGKILL');
    await cluster?.stop();
    await reference?.dispose();
  });
  return undefined;
}
