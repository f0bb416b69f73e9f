/** Watches a real runtime while a test runs, and says afterwards what must not have happened and what is left on the machine. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Daemon } from '../e2e/daemon.ts';
import type { Containerd } from '../e2e/lab/containerd.ts';
import { containers, type Held, sandboxes } from '../e2e/runtime.ts';

const LOOK_EVERY_MS = 100;

export class Witness {
  /** Everything that was seen, by container id; as it was when it was last seen. */
  readonly containers = new Map<string, Held>();
  /** Pod UID by sandbox id. */
  readonly sandboxes = new Map<string, string>();
  /** What was seen and must not be: two containers of one name, or two ready sandboxes, of one pod at a time. */
  readonly duplicates = new Set<string>();
  looks = 0;
  readonly #lab: Containerd;
  #done: Promise<void> | undefined;
  #ended = false;

  constructor(lab: Containerd) {
    this.#lab = lab;
  }

  start(): this {
    this.#done = this.#watch();
    return this;
  }

  async stop(): Promise<void> {
    this.#ended = true;
    await this.#done;
  }

  /** Waits until the machine holds nothing of what was seen. `of`: where the kubelet kept it, if it was not this daemon. */
  async nothingLeft(daemon: Daemon, timeoutMs: number, of: Parameters<Witness['leftovers']>[0] = daemon): Promise<void> {
    const look = async () => {
      const left = await this.leftovers(of);
      if (left.length > 0) throw new Error(left.join('; '));
      return true;
    };
    await daemon.wait('nothing is left', look, { timeoutMs, everyMs: 500 });
  }

  async #watch(): Promise<void> {
    while (!this.#ended) {
      await this.look().catch(() => undefined);
      await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS));
    }
  }

  async look(): Promise<void> {
    const running = new Set<string>();
    for (const c of await containers(this.#lab)) {
      this.containers.set(c.id, c);
      const key = `${c.uid}/${c.container}`;
      if (!c.running) continue;
      if (running.has(key)) this.duplicates.add(`two running containers ${key} of ${c.pod}`);
      running.add(key);
    }
    const ready = new Set<string>();
    for (const s of await sandboxes(this.#lab)) {
      const uid = s.metadata?.uid ?? '';
      this.sandboxes.set(s.id, uid);
      if (!s.ready) continue;
      if (ready.has(uid)) this.duplicates.add(`two ready sandboxes of ${s.metadata?.name}`);
      ready.add(uid);
    }
    this.looks += 1;
  }

  /** Containers that were run more than once, by pod and name: the second and later lives. */
  restarted(): string[] {
    return [...this.containers.values()].filter((c) => c.restartCount > 0).map((c) => `${c.pod}/${c.container}#${c.restartCount}`);
  }

  /** What is still on the machine of all pods that were seen: every word of it names a thing that somebody must remove. */
  async leftovers(daemon: Pick<Daemon, 'rootDir' | 'podLogs' | 'containerLogs'>): Promise<string[]> {
    const uids = [...new Set([...this.sandboxes.values(), ...[...this.containers.values()].map((c) => c.uid)])];
    const ids = [...this.containers.keys(), ...this.sandboxes.keys()];
    const names = [...uids, ...ids];
    const hits = (text: string) => names.some((n) => text.includes(n));
    const list = (dir: string) => (existsSync(dir) ? readdirSync(dir) : []);
    return [
      ...(await containers(this.#lab)).filter((c) => hits(c.uid)).map((c) => `container ${c.pod}/${c.container}`),
      ...(await sandboxes(this.#lab)).filter((s) => ids.includes(s.id)).map((s) => `sandbox of ${s.metadata?.name}`),
      ...list(join(daemon.rootDir, 'pods'))
        .filter(hits)
        .map((d) => `pod folder ${d}`),
      ...list(daemon.podLogs)
        .filter(hits)
        .map((d) => `log folder ${d}`),
      ...list(daemon.containerLogs)
        .filter(hits)
        .map((l) => `log link ${l}`),
      ...readFileSync('/proc/self/mountinfo', 'utf8')
        .split('\n')
        .map((line) => line.split(' ')[4] ?? '')
        .filter(hits)
        .map((path) => `mount ${path}`),
      ...cgroups('/sys/fs/cgroup')
        .filter(hits)
        .map((path) => `cgroup ${path}`),
      ...commands()
        .filter(hits)
        .map((command) => `process ${command}`),
      ...list(`/sys/class/net/${this.#lab.bridge}/brif`).map((link) => `network device ${link} on the pods' bridge`),
      ...list(join(this.#lab.dir, 'ipam', this.#lab.bridge))
        .filter((file) => /^\d+\.\d+\.\d+\.\d+$/.test(file))
        .map((ip) => `pod address ${ip}`),
    ];
  }
}

/** Every cgroup folder; those that go away meanwhile are left out. */
function cgroups(dir: string): string[] {
  try {
    return readdirSync(dir, { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .flatMap((entry) => [join(dir, entry.name), ...cgroups(join(dir, entry.name))]);
  } catch {
    return [];
  }
}

function commands(): string[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map((pid) => {
      try {
        return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ');
      } catch {
        return '';
      }
    });
}
