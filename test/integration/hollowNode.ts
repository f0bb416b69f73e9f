/** A whole node on the hollow runtime with real files and real time: what integration tests drive. */
import { mkdirSync, mkdtempSync, renameSync, rmSync, unlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { deathBundles } from '@actorlet/deaths/src/extension.ts';
import { faultInjection } from '@actorlet/faults/src/extension.ts';
import { createHollowRuntime, type HollowOptions, type HollowRuntime } from '@actorlet/runtimes/src/hollow/index.ts';
import { shownPages } from '@actorlet/shown/src/extension.ts';
import { createNode, type Node } from '../../src/actors/node.ts';
import { documentsHere } from '../../src/actors/pods/sources/document.ts';
import { createClock, createEntropy, createRng, createYield } from '../../src/boot/dependencies/clock.ts';
import { createHostFs } from '../../src/boot/dependencies/fs.ts';
import { createHost } from '../../src/boot/dependencies/machine/host.ts';
import { createSys } from '../../src/boot/dependencies/machine/sys.ts';
import { createMetrics } from '../../src/boot/dependencies/metrics/metrics.ts';
import { createNet } from '../../src/boot/dependencies/net/net.ts';
import { createProber } from '../../src/boot/dependencies/prober.ts';
import type { KubeletConfiguration, KubeletFlags } from '../../src/machines/config/config.ts';
import { defaultNodeConfig } from '../../src/machines/config/defaults.ts';
import { isWanted, type PodRecord, podsView } from '../../src/machines/pods/manager/messages.ts';
import { type StatusEntry, statusesView } from '../../src/machines/pods/status/messages.ts';
import type { Ports } from '../../src/ports/ports.ts';
import { collectingLogger, type LogLine } from '../supervision/fakePorts.ts';

export interface HollowNode extends AsyncDisposable {
  dir: string;
  manifests: string;
  runtime: HollowRuntime;
  node: Node;
  lines: LogLine[];
  write(file: string, manifest: object | string): void;
  remove(file: string): void;
  record(name: string): PodRecord | undefined;
  status(name: string): StatusEntry | undefined;
  /** Stops the tree and builds a new one on the same runtime and folder. */
  reboot(): Promise<void>;
}

export interface HollowNodeOptions {
  config?: Partial<KubeletConfiguration>;
  flags?: Partial<KubeletFlags>;
  hollow?: Partial<HollowOptions>;
  ports?: (ports: Ports) => Ports;
}

export async function hollowNode(o: HollowNodeOptions = {}): Promise<HollowNode> {
  const dir = mkdtempSync(join(tmpdir(), 'actorlet-node-'));
  const manifests = join(dir, 'manifests');
  mkdirSync(manifests);
  const lines: LogLine[] = [];
  const clock = createClock();
  const rng = createRng();
  const runtime = createHollowRuntime({ clock, rng, ...o.hollow });
  const build = async (): Promise<Node> => {
    const ports: Ports = {
      clock,
      rng,
      entropy: createEntropy(),
      documents: documentsHere(createEntropy()),
      yield: createYield(),
      fs: createHostFs(),
      sys: createSys({ notify: () => false }),
      net: createNet(),
      prober: createProber(),
      host: createHost(),
      cri: runtime,
      log: collectingLogger(lines),
      metrics: createMetrics(),
    };
    const config = defaultNodeConfig({
      flags: { rootDir: join(dir, 'root'), hostnameOverride: 'n1', adminSocket: join(dir, 'admin.sock'), ...o.flags },
      config: {
        staticPodPath: manifests,
        fileCheckFrequency: 1_000,
        podLogsDir: join(dir, 'logs', 'pods'),
        healthzPort: 0,
        readOnlyPort: 0,
        ...o.config,
      },
    });
    const node = await createNode(config, o.ports === undefined ? ports : o.ports(ports), {
      extensions: [faultInjection, deathBundles, shownPages],
    });
    await node.start();
    return node;
  };
  const self: HollowNode = {
    dir,
    manifests,
    runtime,
    node: await build(),
    lines,
    write(file, manifest) {
      const text = typeof manifest === 'string' ? manifest : JSON.stringify(manifest);
      writeFileSync(join(dir, file), text);
      renameSync(join(dir, file), join(manifests, file));
    },
    remove: (file) => unlinkSync(join(manifests, file)),
    record(name) {
      const records = self.node.tree.registry.read(podsView)?.value.records ?? new Map<string, PodRecord>();
      return [...records.values()].find((r) => r.pod.metadata.name === `${name}-n1` && isWanted(r));
    },
    status(name) {
      const uid = self.record(name)?.pod.metadata.uid;
      return uid === undefined ? undefined : self.node.tree.registry.read(statusesView)?.value.get(uid);
    },
    async reboot() {
      await self.node.stop();
      self.node = await build();
    },
    async [Symbol.asyncDispose]() {
      await self.node.stop();
      rmSync(dir, { recursive: true, force: true });
    },
  };
  return self;
}

export function manifest(name: string, container: object = {}, spec: object = {}): object {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name },
    spec: { containers: [{ name: 'main', image: 'busybox:1', ...container }], ...spec },
  };
}

/** Polls a condition; fails with what it last was. */
export async function until<T>(what: string, look: () => T | undefined | false | null, withinMs = 30_000): Promise<T> {
  const end = performance.now() + withinMs;
  for (;;) {
    const value = look();
    if (value !== undefined && value !== false && value !== null) return value;
    if (performance.now() > end) throw new Error(`not within ${withinMs} ms: ${what}`);
    await new Promise((wake) => setTimeout(wake, 5));
  }
}
