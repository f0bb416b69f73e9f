/** Every case of `cases.ts` on one node of a real cluster, side by side: what its driver is asked, and what the cluster and the container see. */
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Pod } from '../../../src/machines/kube/types.ts';
import { messageOf } from '../../../src/machines/text/errors.ts';
import type { CsiRequest, PublishRequest } from '../../../src/machines/wire/csi.ts';
import { type Cluster, isReady, LONG, STAY } from '../../cluster/cluster.ts';
import { NODE_NAME } from '../../e2e/daemon.ts';
import { REFERENCE_LOGS } from '../../e2e/lab/cluster/referenceKubelet.ts';
import { sh } from '../../e2e/manifests.ts';
import { startDriver, type TestDriver } from '../../volumes/csiDriver.ts';
import { CASES, type CsiCase, isBlock, volumesOf } from './cases.ts';
import { type Claimed, watchClaims } from './claims.ts';
import { loopDevices } from './loops.ts';
import { plainCalls, plainEvents, publishesIn } from './plain.ts';

/** The least time in which the reference looks at a claim again. */
const GROWTH = { timeoutMs: 100_000, everyMs: 250 };
/** Events of a burst of pods come late. */
const SHORT = { timeoutMs: 110_000, everyMs: 200 };
const QUIET_MS = 5_000;
const STATS_TIMEOUT = { timeoutMs: 100_000, everyMs: 1_000 };

/** What became of one case. */
export interface Told {
  /** Calls of its driver in turn; the same call again and again is one. Questions for capabilities are left out. */
  calls: (readonly [method: string, request: object])[];
  /** Group and mode of the volume's root and of a file in it, as the container sees them. */
  seen?: string;
  /** Warnings about its pod and claim. */
  events: string[];
  /** What the status of the claim went through. */
  claim?: string[];
  stats?: object;
  /** So many calls published the volume, where two of the pod name the same claim. */
  publishes?: number;
  /** `migrated` of each counted call. */
  migrated?: string[];
  /** The case did not end as it should. */
  error?: string;
}

interface Subject {
  name: string;
  of: CsiCase;
  driver: TestDriver;
  driverName: string;
}

const driverNameOf = (name: string, of: CsiCase) => of.inTree?.driver ?? `${name}.csi.test`;

export class CsiLab {
  readonly #c: Cluster;
  readonly #subjects = new Map<string, Subject>();
  readonly #loops: ReturnType<typeof loopDevices>;
  readonly #claims: Claimed;

  constructor(c: Cluster) {
    this.#c = c;
    this.#loops = loopDevices(join(c.daemon.dir, 'disks'));
    this.#claims = watchClaims(c);
  }

  async run(names: readonly string[] = Object.keys(CASES)): Promise<Record<string, Told>> {
    const attaching = this.#attach();
    try {
      for (const name of names) await this.#start(name);
      await this.#c.apply(...this.#common(), ...[...this.#subjects.values()].flatMap((s) => this.#provided(s)));
      await this.#c.daemon.wait(
        'all drivers are registered',
        () => [...this.#subjects.values()].every((s) => s.driver.told.length > 0),
        LONG,
      );
      return Object.fromEntries(await Promise.all([...this.#subjects.values()].map((s) => this.#lived(s))));
    } finally {
      await attaching.stop();
      this.#claims.stop();
      for (const s of this.#subjects.values()) await s.driver.stop();
      this.#loops.dispose();
    }
  }

  #common(): object[] {
    const secret = (name: string) => ({
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name, namespace: 'default' },
      stringData: { key: `of ${name}` },
    });
    const rules = Object.entries(CASES).flatMap(([name, of]) =>
      of.rules === null
        ? []
        : [
            {
              apiVersion: 'storage.k8s.io/v1',
              kind: 'CSIDriver',
              metadata: { name: driverNameOf(name, of) },
              spec: { attachRequired: false, ...of.rules },
            },
          ],
    );
    const grows = {
      apiVersion: 'storage.k8s.io/v1',
      kind: 'StorageClass',
      metadata: { name: 'grows' },
      provisioner: 'csi.test',
      allowVolumeExpansion: true,
    };
    return [secret('stage'), secret('publish'), secret('expand'), grows, ...rules];
  }

  async #start(name: string): Promise<void> {
    const of = CASES[name];
    if (of === undefined) throw new Error(`no case ${name}`);
    const driverName = driverNameOf(name, of);
    this.#subjects.set(name, { name, of, driverName, driver: await this.#drive(name, of, of.capabilities ?? []) });
  }

  #drive(name: string, of: CsiCase, capabilities: readonly string[]): Promise<TestDriver> {
    const driverName = driverNameOf(name, of);
    const socket = join(this.#c.daemon.rootDir, 'plugins_registry', `${driverName}-reg.sock`);
    const left = new Map(Object.entries(of.faults ?? {}).map(([method, { codes }]) => [method, [...codes]]));
    return startDriver({
      ...{ name: driverName, socket, capabilities: [...capabilities] },
      publish: (request) => this.#publish(name, request),
      unpublish: (path) => this.#unpublish(path),
      expand: (request) => this.#expand(request),
      stats: () => ({
        usage: [
          { unit: 'BYTES', total: '1000', used: '600', available: '400' },
          { unit: 'INODES', total: '100', used: '10', available: '90' },
        ],
        volumeCondition: { abnormal: true, message: 'a disk of its mirror is gone' },
      }),
      fault: (method) => {
        const codes = left.get(method);
        const code = of.faults?.[method]?.forever === true ? codes?.[0] : codes?.shift();
        return code === undefined ? undefined : { code, details: 'as the test wants' };
      },
    });
  }

  #publish(name: string, { targetPath, volumeCapability }: PublishRequest): void {
    if (volumeCapability.mount === undefined || volumeCapability.mount === null) {
      this.#loops.make(name, targetPath);
      return;
    }
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=16M', name, targetPath]);
    writeFileSync(join(targetPath, 'file'), 'x', { mode: 0o600 });
  }
  #unpublish(path: string): void {
    if (!this.#loops.remove(path)) execFileSync('umount', [path]);
  }
  #expand({ volumePath, capacityRange, volumeCapability }: CsiRequest<'NodeExpandVolume'>): void {
    if (volumeCapability.mount === undefined || volumeCapability.mount === null) return;
    execFileSync('mount', ['-o', `remount,size=${capacityRange.requiredBytes}`, volumePath]);
  }

  #provided({ name, of, driverName: driver }: Subject): object[] {
    if (of.inline !== undefined) return [];
    const common = { storageClassName: 'grows', accessModes: ['ReadWriteOnce'], ...of.pv };
    const { mountOptions: _, ...claimed } = common as { mountOptions?: unknown };
    const claimRef = { namespace: 'default', name };
    const source = of.inTree?.source ?? { csi: { driver, volumeHandle: `handle-${name}`, ...of.source } };
    return [
      {
        apiVersion: 'v1',
        kind: 'PersistentVolume',
        metadata: { name: `pv-${name}` },
        spec: { ...common, capacity: { storage: '16Mi' }, persistentVolumeReclaimPolicy: 'Retain', claimRef, ...source },
      },
      {
        apiVersion: 'v1',
        kind: 'PersistentVolumeClaim',
        metadata: claimRef,
        spec: { ...claimed, volumeName: `pv-${name}`, resources: { requests: { storage: '16Mi' } } },
      },
    ];
  }

  /** What a case that went wrong did until then stays to be read. */
  async #lived(s: Subject): Promise<[string, Told]> {
    try {
      return await this.#live(s);
    } catch (error) {
      const calls = s.driver.calls.map(({ method, request }) => [method, request] as const);
      return [s.name, { calls, events: await this.#events(s.name), error: messageOf(error).slice(0, 500) }];
    }
  }

  async #live(s: Subject): Promise<[string, Told]> {
    const { name, of } = s;
    if (of.growth?.beforePod === true) {
      await this.#claims.bound(name);
      await this.#grant(name, of.growth.sizes[0] ?? '', false);
    }
    await this.#create(s);
    const pod = await this.#settled(s);
    const told: Told = { calls: [], events: [] };
    const uid = pod.metadata.uid;
    if (of.fails === undefined && !isBlock(of)) told.seen = await this.#seen(pod);
    if (of.returns !== undefined) await this.#comeBack(s, of.returns);
    if (of.growth !== undefined && of.growth.beforePod !== true) await this.#grow(s);
    if (of.stats === true) told.stats = await this.#stats(pod);
    await this.#c.kubectl('delete', 'pod', name, '--wait=true');
    await this.#c.daemon.wait(
      `the driver of ${name} has nothing`,
      () => s.driver.published.size === 0 && s.driver.staged.size === 0,
      SHORT,
    );
    await this.#quiet(s);
    told.events = await this.#events(name);
    told.calls = plainCalls(s.driver.calls, { rootDir: this.#c.daemon.rootDir, uid });
    if (of.growth !== undefined) told.claim = this.#claims.of(name);
    if (of.twice !== undefined) told.publishes = publishesIn(s.driver.calls);
    if (of.inTree !== undefined) told.migrated = await this.#migrated(s.driverName);
    return [name, told];
  }

  /** No call has come for a while: an agent may have more to undo than the driver has done. */
  async #quiet({ name, driver }: Subject): Promise<void> {
    let [count, since] = [-1, 0];
    const quiet = () => {
      if (count !== driver.calls.length) [count, since] = [driver.calls.length, performance.now()];
      return performance.now() - since > QUIET_MS;
    };
    await this.#c.daemon.wait(`the driver of ${name} is left alone`, quiet, SHORT);
  }

  async #create({ name, of, driverName }: Subject): Promise<void> {
    const { volumes, uses } = volumesOf(name, of, driverName);
    const script = `stat -c '%u:%g %a' /data /data/file | tr '\\n' ' '; echo seen; ${STAY}`;
    await this.#c.create(name, { containers: [sh('main', script, uses)], volumes, ...of.pod });
  }

  async #settled({ name, of }: Subject): Promise<Pod> {
    if (of.fails === undefined) return this.#c.podWhere(name, 'is Ready', isReady, SHORT);
    const text = of.fails;
    await this.#c.daemon.wait(`${name} fails`, async () => (await this.#events(name)).some((e) => e.includes(text)), SHORT);
    await this.#c.daemon.wait(`${name} is tried again`, async () => (await this.#countEvents(name)) > 2, SHORT);
    const pod = await this.#c.pod(name);
    if (pod === null || isReady(pod)) throw new Error(`pod ${name} should not run`);
    return pod;
  }

  async #seen(pod: Pod): Promise<string> {
    const { name, uid } = pod.metadata;
    const file = join(REFERENCE_LOGS.podLogs, `default_${name}_${uid}/main/0.log`);
    const look = () => existsSync(file) && /stdout F (.*) seen/.exec(readFileSync(file, 'utf8'))?.[1];
    return this.#c.daemon.wait(`${name} looks`, look, SHORT);
  }

  async #comeBack(s: Subject, capabilities: readonly string[]): Promise<void> {
    const before = s.driver;
    await before.stop();
    const after = await this.#drive(s.name, s.of, capabilities);
    for (const target of before.published) after.published.add(target);
    if (capabilities.length > 0) for (const target of before.staged) after.staged.add(target);
    after.calls.unshift(...before.calls);
    s.driver = after;
    await this.#c.daemon.wait(`the driver of ${s.name} is registered again`, () => after.told.includes(''), LONG);
  }

  async #grow({ name, of }: Subject): Promise<void> {
    for (const [at, size] of (of.growth?.sizes ?? []).entries()) {
      const fails = of.growth?.fails?.[at] ?? null;
      // The reference looks at a claim again when it syncs the pod.
      const look = () => this.#c.merge(`pods/${name}`, { metadata: { annotations: { 'csi.test/size': size } } });
      await this.#grant(name, size, at > 0 && of.growth?.fails?.[at - 1] !== undefined && of.growth.fails[at - 1] !== null);
      await look();
      const said = async () => [...(await this.#events(name)), ...this.#claims.of(name)];
      const done = async () => (fails === null ? this.#has(name, size) : (await said()).some((line) => line.includes(fails)));
      await this.#c.daemon.wait(`the claim ${name} has ${size}`, done, GROWTH);
    }
  }

  #has(name: string, size: string): boolean {
    return this.#claims.of(name).at(-1)?.includes(`capacity ${size}`) === true;
  }

  /** What the user and the controller do for a claim that grows. `smaller`: the volume has that room already. */
  async #grant(name: string, storage: string, smaller: boolean): Promise<void> {
    await this.#c.merge(`persistentvolumeclaims/${name}`, { spec: { resources: { requests: { storage } } } });
    if (!smaller)
      await this.#c.kubectl('patch', 'pv', `pv-${name}`, '--type=merge', '-p', JSON.stringify({ spec: { capacity: { storage } } }));
    const pending = { type: 'FileSystemResizePending', status: 'True', lastProbeTime: null, lastTransitionTime: new Date().toISOString() };
    await this.#c.merge(`persistentvolumeclaims/${name}/status`, {
      status: { conditions: [pending], allocatedResources: { storage }, allocatedResourceStatuses: { storage: 'NodeResizePending' } },
    });
  }

  async #stats(pod: Pod): Promise<object> {
    return this.#c.daemon.wait(
      `${pod.metadata.name} has figures`,
      async () => {
        const page = JSON.parse(await this.#c.nodePage('/stats/summary')) as {
          pods: { podRef: { name: string }; volume?: { name: string; time?: string }[] }[];
        };
        const found = page.pods.find((p) => p.podRef.name === pod.metadata.name)?.volume?.find((v) => v.name === 'disk');
        return found !== undefined && { ...found, time: undefined };
      },
      STATS_TIMEOUT,
    );
  }

  async #events(name: string): Promise<string[]> {
    const got = await this.#c.plane.request('GET', `/api/v1/namespaces/default/events?fieldSelector=involvedObject.name=${name}`);
    return plainEvents(got.body as { items: { reason: string; message: string; involvedObject: { kind: string } }[] });
  }

  async #countEvents(name: string): Promise<number> {
    const got = await this.#c.plane.request(
      'GET',
      `/api/v1/namespaces/default/events?fieldSelector=involvedObject.name=${name},type=Warning`,
    );
    return (got.body as { items: { count?: number }[] }).items.reduce((sum, { count }) => sum + (count ?? 1), 0);
  }

  async #migrated(driver: string): Promise<string[]> {
    const page = await this.#c.nodePage('/metrics');
    const lines = page.split('\n').filter((l) => l.startsWith('csi_operations_seconds_count{') && l.includes(`driver_name="${driver}"`));
    return lines.map((l) => `${/method_name="([^"]*)"/.exec(l)?.[1]} ${/migrated="([^"]*)"/.exec(l)?.[1]}`).sort();
  }

  /** What the attacher beside a driver does. */
  #attach(): { stop(): Promise<void> } {
    let on = true;
    const turn = async () => {
      while (on) {
        const got = await this.#c.plane.request('GET', '/apis/storage.k8s.io/v1/volumeattachments');
        const { items = [] } = got.body as {
          items?: { metadata: { name: string }; spec: { nodeName: string }; status?: { attached?: boolean } }[];
        };
        for (const { metadata, spec, status } of items) {
          if (status?.attached === true || spec.nodeName !== NODE_NAME) continue;
          const body = { status: { attached: true, attachmentMetadata: { lun: '3' } } };
          await this.#c.plane.request('PATCH', `/apis/storage.k8s.io/v1/volumeattachments/${metadata.name}/status`, {
            body,
            contentType: 'application/merge-patch+json',
          });
        }
        await new Promise((resolve) => setTimeout(resolve, 200));
      }
    };
    const done = turn();
    return {
      async stop() {
        on = false;
        await done;
      },
    };
  }
}
