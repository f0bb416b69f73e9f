/** Pod sandboxes of a hollow runtime: a name, an address, and the containers that end with them. */
import { shareData } from '@actorlet/kubelet/machines/data/sharedData.ts';
import type { CriRequest, CriResponse } from '@actorlet/kubelet/machines/wire/criCalls.ts';
import { CODE, matchSandbox, RuntimeRefusal, sandboxItem, sandboxKey, sandboxStatus } from '../../shared/model.ts';
import { annotatedLife, DEFAULT_LIFE } from '../life.ts';
import type { Sandbox, Shared } from '../state.ts';
import type { HollowHeld } from '../types.ts';
import type { Containers } from './containers.ts';

export class Sandboxes {
  readonly #o: Shared;
  readonly #containers: Containers;
  readonly #addresses = new Addresses();
  /** Of the sandbox that was made last: most pods of a node differ in a few names. */
  #last: Sandbox['config'] | undefined;

  constructor(o: Shared, containers: Containers) {
    this.#o = o;
    this.#containers = containers;
  }

  async run({ config, runtimeHandler }: CriRequest<'RunPodSandbox'>): Promise<CriResponse<'RunPodSandbox'>> {
    const { state, timing, options } = this.#o;
    const key = sandboxKey(config.metadata);
    if (state.names.has(key)) throw new RuntimeRefusal(CODE.alreadyExists, `sandbox name ${key} is taken`);
    if (options.cgroupDriver === 'SYSTEMD' && config.linux?.cgroupParent?.endsWith('.slice') !== true)
      throw new RuntimeRefusal(
        CODE.unknown,
        'runc create failed: expected cgroupsPath to be of format "slice:prefix:name" for systemd cgroups',
      );
    const life = { ...DEFAULT_LIFE, ...annotatedLife(config.annotations, null, config.metadata.attempt) };
    state.names.add(key);
    try {
      const delay = timing.wait(timing.stretched(life.sandboxDelayMs, life.jitter));
      if (delay !== undefined) await delay;
      if (life.sandboxError !== '') throw new RuntimeRefusal(CODE.unknown, life.sandboxError);
      const s = this.#made({ config, runtimeHandler: runtimeHandler ?? '', key });
      state.sandboxes.set(s.id, s);
      state.counts.sandboxesRun++;
      state.hint('created', s.id, s);
      state.hint('started', s.id, s);
      return { podSandboxId: s.id };
    } catch (error) {
      state.names.delete(key);
      throw error;
    }
  }

  update({ podSandboxId, resources, overhead }: CriRequest<'UpdatePodSandboxResources'>): CriResponse<'UpdatePodSandboxResources'> {
    const s = this.#o.state.sandbox(podSandboxId);
    s.config = { ...s.config, linux: { ...s.config.linux, resources, ...(overhead === undefined ? {} : { overhead }) } };
    return {};
  }

  /** As it was when the process of this runtime ended. */
  hold({ config, runtimeHandler, ip, createdAtMs }: HollowHeld): Sandbox {
    const { state } = this.#o;
    const key = sandboxKey(config.metadata);
    const s = { ...this.#made({ config, runtimeHandler, key, ip }), createdAtMs };
    state.sandboxes.set(s.id, s);
    state.names.add(key);
    return s;
  }

  /** `ip`: that it has already. */
  #made({
    config: given,
    runtimeHandler,
    key,
    ip,
  }: {
    config: Sandbox['config'];
    runtimeHandler: string;
    key: string;
    ip?: string;
  }): Sandbox {
    const { state, timing } = this.#o;
    const config = shareData(this.#last, given);
    this.#last = config;
    const network = state.conditions.NetworkReady;
    const namespaces = config.linux?.securityContext?.namespaceOptions ?? {};
    const onHostNetwork = namespaces.network === 'NODE';
    if (!onHostNetwork && !network.ok) throw new RuntimeRefusal(CODE.unknown, `network is not ready: ${network.reason}`);
    return {
      id: state.newId(),
      metadata: config.metadata,
      labels: config.labels ?? {},
      annotations: config.annotations ?? {},
      runtimeHandler,
      ready: true,
      createdAtMs: timing.stampMs(),
      ip: onHostNetwork ? '' : this.#addresses.allocate(ip),
      namespaces,
      config,
      key,
    };
  }

  stop({ podSandboxId }: CriRequest<'StopPodSandbox'>): CriResponse<'StopPodSandbox'> {
    const s = this.#o.state.sandboxes.get(podSandboxId);
    if (s !== undefined) this.#stop(s);
    return {};
  }

  #stop(s: Sandbox): void {
    const { state } = this.#o;
    const held = state.containersOf(s.id).find((c) => this.#containers.held(c));
    if (held !== undefined) throw new RuntimeRefusal(CODE.unknown, `container ${held.id} was killed and does not end`);
    for (const c of state.containersOf(s.id)) this.#containers.end(c, 137, '');
    if (!s.ready) return;
    s.ready = false;
    this.#addresses.release(s.ip);
    state.hint('stopped', s.id, s);
  }

  remove({ podSandboxId }: CriRequest<'RemovePodSandbox'>): CriResponse<'RemovePodSandbox'> {
    const { state } = this.#o;
    const s = state.sandboxes.get(podSandboxId);
    if (s === undefined) return {};
    this.#stop(s);
    for (const c of state.containersOf(s.id)) this.#containers.forget(c);
    state.sandboxes.delete(s.id);
    state.names.delete(s.key);
    state.hint('deleted', s.id, s);
    return {};
  }

  status({ podSandboxId }: CriRequest<'PodSandboxStatus'>): CriResponse<'PodSandboxStatus'> {
    return { status: sandboxStatus(this.#o.state.sandbox(podSandboxId)), info: {} };
  }

  list({ filter }: CriRequest<'ListPodSandbox'>): CriResponse<'ListPodSandbox'> {
    return { items: [...this.#o.state.sandboxes.values()].filter((s) => matchSandbox(s, filter)).map(sandboxItem) };
  }
}

/** Addresses of pods, allocated in turn; a sandbox releases its own when it stops. */
class Addresses {
  readonly #used = new Set<string>();
  #last = 0;

  /** `wanted`: where it is free. */
  allocate(wanted = ''): string {
    if (wanted !== '' && !this.#used.has(wanted)) {
      this.#used.add(wanted);
      return wanted;
    }
    for (let tries = 0; tries < 65_000; tries++) {
      this.#last = (this.#last % 65_278) + 1;
      // 10.88.0.1 is the bridge's own address by custom, so pods begin at 10.88.0.2.
      const ip = `10.88.${(this.#last + 1) >> 8}.${(this.#last + 1) & 255}`;
      if (!this.#used.has(ip)) {
        this.#used.add(ip);
        return ip;
      }
    }
    throw new RuntimeRefusal(CODE.unknown, 'no free address in 10.88.0.0/16');
  }

  release(ip: string): void {
    this.#used.delete(ip);
  }
}
