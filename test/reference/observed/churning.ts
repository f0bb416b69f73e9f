/**
 * Churn beside an observer: short-lived pods of many fates come and go for some minutes. Containers crash and run out of memory, a
 * driver refuses, a registry says nothing, a pod is evicted. Once a minute the runtime or the kubelet has a bad moment.
 */
import { createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ObserverLedger } from '@actorlet/kubelet/machines/foundation/observerLedger.ts';
import type { Container, PodSpec } from '../../../src/machines/kube/podTable.ts';
import { sh, steady } from '../../e2e/manifests.ts';
import { startDriver } from '../../volumes/csiDriver.ts';
import { differencesIn, judgedOf, NODE_CONFIG, type ObservedLab } from './lab.ts';

const STAY = 'trap "exit 0" TERM; while :; do sleep 3600 & wait $!; done';
const MINUTE_MS = 60_000;
/** A pod is deleted when it is so old. */
const LIFE_MS = 25_000;
const ROUND_MS = 4_000;
const CSI = 'fails.example.com';

type Spec = Partial<PodSpec> & { containers: Container[] };
const never = (...containers: Container[]): Spec => ({ restartPolicy: 'Never', containers });
const mounts = [{ name: 'v', mountPath: '/v' }];

/** In turn. `PULL` is a registry that takes connections and says nothing. */
const fates = (pull: string): Spec[] => [
  { containers: [steady()] },
  never(sh('main', 'echo done')),
  { containers: [sh('main', 'sleep 1; exit 3')] },
  { containers: [sh('main', STAY, { volumeMounts: mounts })], volumes: [{ name: 'v', configMap: { name: 'settings' } }] },
  never(sh('main', 'x=a; while :; do x=$x$x; done', { resources: { limits: { memory: '16Mi' } } })),
  {
    initContainers: [sh('first', 'exit 0')],
    containers: [sh('main', STAY, { readinessProbe: { exec: { command: ['true'] }, periodSeconds: 2 } })],
  },
  never(sh('one', 'exit 0'), sh('two', 'sleep 2; exit 1')),
  { containers: [sh('main', STAY, { livenessProbe: { exec: { command: ['false'] }, periodSeconds: 2, failureThreshold: 1 } })] },
  { containers: [{ ...steady(), image: `${pull}/nothing:1` }] },
  { containers: [sh('main', STAY, { volumeMounts: mounts })], volumes: [{ name: 'v', emptyDir: { medium: 'Memory' } }] },
  { containers: [sh('main', STAY, { volumeMounts: mounts })], volumes: [{ name: 'v', csi: { driver: CSI } }] },
  {
    containers: [sh('main', `dd if=/dev/zero of=/v/x bs=1M count=4 2>/dev/null; ${STAY}`, { volumeMounts: mounts })],
    volumes: [{ name: 'v', emptyDir: { sizeLimit: '1Mi' } }],
  },
  { containers: [{ ...steady(), command: ['/nothing'] }] },
];

/** One a minute, after the first. */
const DISTURBANCES: readonly { what: string; act(lab: ObservedLab): Promise<void> }[] = [
  {
    what: 'the kubelet is frozen for 8 s',
    async act({ reference }) {
      process.kill(reference.pid ?? 0, 'SIGSTOP');
      await sleep(8_000);
      process.kill(reference.pid ?? 0, 'SIGCONT');
    },
  },
  {
    what: 'the runtime starts again',
    async act({ cluster }) {
      await cluster.lab.kill();
      await sleep(2_000);
      await cluster.lab.start();
    },
  },
  {
    what: 'the kubelet is killed, and starts again',
    async act({ reference, address }) {
      await reference.end('SIGKILL');
      await reference.start({ nodeIp: address.ip, config: NODE_CONFIG });
    },
  },
];

/** Prints what was judged each minute. Answers when its pods have gone. */
export async function churn(lab: ObservedLab, { minutes, atOnce }: { minutes: number; atOnce: number }): Promise<ObserverLedger> {
  const { cluster, observer } = lab;
  const silent = createServer((socket) => void socket.on('error', () => undefined));
  await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', () => resolve()));
  const { port } = silent.address() as { port: number };
  const rules = { attachRequired: false, volumeLifecycleModes: ['Ephemeral'] };
  await cluster.apply({ apiVersion: 'storage.k8s.io/v1', kind: 'CSIDriver', metadata: { name: CSI }, spec: rules });
  const driver = await startDriver({
    ...{ name: CSI, socket: join(cluster.daemon.rootDir, 'plugins_registry', `${CSI}-reg.sock`) },
    fault: (method) => (method === 'NodePublishVolume' ? { code: 13, details: 'the disk is not there' } : undefined),
  });
  const all = fates(`127.0.0.1:${port}`);
  const born: { name: string; atMs: number }[] = [];
  const beganMs = Date.now();
  let made = 0;
  let disturbed = 0;
  let toldMs = beganMs;
  let toldId = 0;
  while (Date.now() - beganMs < minutes * MINUTE_MS) {
    const old = born.filter(({ atMs }) => Date.now() - atMs > LIFE_MS);
    if (old.length > 0) {
      born.splice(0, old.length);
      await cluster.kubectl('delete', 'pod', '--wait=false', '--ignore-not-found', ...old.map(({ name }) => name));
    }
    for (let i = 0; i < atOnce; i++) {
      const name = `churn-${made}`;
      const spec = all[made % all.length];
      made += 1;
      if (spec === undefined) continue;
      await cluster.create(name, spec).catch((error: unknown) => console.error(String(error)));
      born.push({ name, atMs: Date.now() });
    }
    if (Date.now() - beganMs > (disturbed + 1) * MINUTE_MS) {
      const disturbance = DISTURBANCES[disturbed % DISTURBANCES.length];
      disturbed += 1;
      console.log(disturbance?.what);
      await disturbance?.act(lab);
    }
    if (Date.now() - toldMs > MINUTE_MS) {
      toldMs = Date.now();
      const at = `${new Date().toISOString()} ${made} pods`;
      // A machine with too much work may leave it without an answer for a while.
      await observer.ledger().then(
        (ledger) => {
          console.log(`${at}, ${judgedOf(ledger)} judged, ${differencesIn(ledger).length} disagreements`);
          for (const line of differencesIn(ledger, toldId)) console.log(line);
          toldId = Math.max(toldId, ...ledger.disagreements.map(({ id }) => id + 1));
        },
        (error: unknown) => console.log(`${at}; ${String(error)}`),
      );
    }
    await sleep(ROUND_MS);
  }
  await cluster.kubectl('delete', 'pod', '--wait=false', '--all');
  await sleep(LIFE_MS);
  const ledger = await observer.ledger();
  await driver.stop();
  silent.close();
  return ledger;
}
