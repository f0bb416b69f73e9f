/** Objects of the cluster in which a fleet runs: manifests go there, and expectations look there. */

import { parseLabelSelector } from '@actorlet/kubelet/machines/kube/read/labelSelector.ts';
import { isKubeObject, type KubeObject, type KubeRequest } from '@actorlet/kubelet/machines/kube/request.ts';
import { isRecord } from '@actorlet/kubelet/machines/shape/conform.ts';
import { messageOf } from '@actorlet/kubelet/machines/text/errors.ts';
import type { KubeApi } from '@actorlet/kubelet/ports/kube.ts';
import type { Clock } from '@actorlet/kubelet/ports/ports.ts';
import type { ObjectsSpec } from '../spec/expect.ts';
import { asked } from '../watches/asking.ts';
import type { OfKind } from './leftBehind.ts';

const DEFINITION = 'CustomResourceDefinition';
/** From the definition of a custom resource until it is served. */
const SERVED_MS = 30_000;
const LOOK_EVERY_MS = 50;
/** New kinds are found then. */
const DISCOVERED_MS = 10_000;

interface Kind {
  apiVersion: string;
  kind: string;
}
interface Resource {
  name: string;
  namespaced: boolean;
}

export interface ClusterOptions {
  clock: Clock;
  /** Aborted: requests that are under way end. */
  signal: AbortSignal;
  /** Runs a condition of the fleet file. @throws Error where it takes too long. */
  limited<T>(act: () => T): T;
  /** Resolves when objects of all kinds can be created. Absent: they can. */
  welcome?(): Promise<void>;
}

/** @throws Error with the words of the API server, from each of its methods. */
export class Cluster {
  readonly #kube: KubeApi;
  readonly #o: ClusterOptions;
  #listable: readonly { path: string; kind: string }[] = [];
  #listedMs = Number.NEGATIVE_INFINITY;
  /** By apiVersion and kind. */
  readonly #resources = new Map<string, Resource>();

  constructor(kube: KubeApi, o: ClusterOptions) {
    this.#kube = kube;
    this.#o = o;
  }

  async list(of: ObjectsSpec): Promise<KubeObject[]> {
    const { name, selector = '' } = of;
    const path = await this.#path(of, { namespace: of.namespace ?? (name === undefined ? '' : 'default') });
    if (name !== undefined) {
      const found = await this.#ask({ verb: 'GET', path: `${path}/${name}` });
      return isKubeObject(found) ? [found] : [];
    }
    // From the API server's cache: a look must not cost it much.
    const query = { resourceVersion: '0', ...(selector === '' ? {} : { labelSelector: selector }) };
    const list = await this.#ask({ verb: 'GET', path, query });
    const items = isRecord(list) && Array.isArray(list.items) ? list.items.filter(isKubeObject) : [];
    const fits = parseLabelSelector(selector);
    return typeof fits === 'string' ? items : items.filter(({ metadata }) => fits(labelsOf(metadata.labels)));
  }

  /**
   * Creates it; one that is there becomes what the manifest says, where it says something. Of a definition of a custom resource it waits
   * until that is served: what follows in a manifest is often of its kind.
   */
  async apply(object: KubeObject): Promise<void> {
    await this.#o.welcome?.();
    const path = await this.#pathOf(object);
    const { name } = object.metadata;
    const present = await this.#ask({ verb: 'GET', path: `${path}/${name}` });
    if (present === null) await this.#ask({ verb: 'POST', path, body: object });
    else await this.#ask({ verb: 'PATCH', path: `${path}/${name}`, patchType: 'merge', body: object });
    if (object.kind === DEFINITION) await this.#served(`${path}/${name}`, object);
  }

  async #served(path: string, { spec, metadata }: KubeObject): Promise<void> {
    const { clock, signal } = this.#o;
    const { group, names, versions } = isRecord(spec) ? spec : {};
    const kind = isRecord(names) ? String(names.kind) : '';
    const served = Array.isArray(versions) ? versions.filter(isRecord).filter((v) => v.served === true) : [];
    // Discovery names it before it can be listed.
    const isServed = async (): Promise<boolean> => {
      if (!isEstablished(await this.#ask({ verb: 'GET', path }))) return false;
      const lists = served.map((v) => this.list({ apiVersion: `${group}/${v.name}`, kind }));
      return (await Promise.allSettled(lists)).every((list) => list.status === 'fulfilled');
    };
    for (const deadline = clock.monoMs() + SERVED_MS; !(await isServed()); ) {
      if (clock.monoMs() > deadline || signal.aborted) {
        throw new Error(`the API server does not serve ${metadata.name} after ${SERVED_MS / 1_000} s`);
      }
      await new Promise<void>((resolve) => void clock.setTimeout(resolve, LOOK_EVERY_MS));
    }
  }

  async remove(object: KubeObject): Promise<void> {
    const path = await this.#pathOf(object);
    await this.#ask({ verb: 'DELETE', path: `${path}/${object.metadata.name}`, query: { propagationPolicy: 'Background' } });
  }

  /** Those for which the condition holds. @throws Error where it takes too long. */
  fitting(objects: readonly KubeObject[], holds: (object: KubeObject) => boolean): KubeObject[] {
    try {
      return this.#o.limited(() => objects.filter(holds));
    } catch (error) {
      throw new Error(`the condition on ${objects.length} objects takes too long: ${messageOf(error)}`, { cause: error });
    }
  }

  /** All objects that can be listed, of all kinds but events. */
  async listAll(): Promise<OfKind[]> {
    const nowMs = this.#o.clock.monoMs();
    if (nowMs - this.#listedMs > DISCOVERED_MS) {
      this.#listable = await this.#discover();
      this.#listedMs = nowMs;
    }
    const all: OfKind[] = [];
    for (const { path, kind } of this.#listable) {
      const list = await this.#ask({ verb: 'GET', path, query: { resourceVersion: '0' } });
      const items = isRecord(list) && Array.isArray(list.items) ? list.items.filter(isKubeObject) : [];
      all.push({ kind, objects: items });
    }
    return all;
  }

  async #discover(): Promise<{ path: string; kind: string }[]> {
    const groups = await this.#ask({ verb: 'GET', path: '/apis' });
    const named = isRecord(groups) && Array.isArray(groups.groups) ? groups.groups.filter(isRecord) : [];
    const versions = named.map(({ preferredVersion: v }) => (isRecord(v) ? String(v.groupVersion) : ''));
    const roots = ['/api/v1', ...versions.filter((version) => version !== '').map((version) => `/apis/${version}`)];
    const found: { path: string; kind: string }[] = [];
    for (const root of roots) {
      for (const { name, kind, verbs } of kindsIn(await this.#ask({ verb: 'GET', path: root }))) {
        const isListed = Array.isArray(verbs) && verbs.includes('list') && verbs.includes('watch');
        if (isListed && kind !== 'Event') found.push({ path: `${root}/${String(name)}`, kind: String(kind) });
      }
    }
    return found;
  }

  async podsOn(nodes: ReadonlySet<string>): Promise<KubeObject[]> {
    const pods = await this.list({ apiVersion: 'v1', kind: 'Pod' });
    return pods.filter(({ spec }) => isRecord(spec) && nodes.has(String(spec.nodeName)));
  }

  async evict({ metadata: { name, namespace = 'default' } }: KubeObject): Promise<void> {
    const body = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name, namespace } };
    await this.#ask({ verb: 'POST', path: `/api/v1/namespaces/${namespace}/pods/${name}/eviction`, body });
  }

  #pathOf({ apiVersion = '', kind = '', metadata: { namespace = 'default' } }: KubeObject): Promise<string> {
    return this.#path({ apiVersion, kind }, { namespace });
  }

  async #path({ apiVersion, kind }: Kind, { namespace }: { namespace: string }): Promise<string> {
    const root = apiVersion.includes('/') ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
    const key = `${apiVersion} ${kind}`;
    let resource = this.#resources.get(key);
    if (resource === undefined) {
      const found = await this.#ask({ verb: 'GET', path: root });
      const own = kindsIn(found).find((r) => r.kind === kind && !String(r.name).includes('/'));
      if (own === undefined) throw new Error(`this API server has no kind ${kind} of ${apiVersion}`);
      resource = { name: String(own.name), namespaced: own.namespaced === true };
      this.#resources.set(key, resource);
    }
    return resource.namespaced && namespace !== '' ? `${root}/namespaces/${namespace}/${resource.name}` : `${root}/${resource.name}`;
  }

  /** Null: there is no such object. What cannot be created for want of a kind is a failure. */
  #ask(request: KubeRequest): Promise<unknown> {
    const { signal } = this.#o;
    return asked(request, { kube: this.#kube, signal }, request.verb === 'POST' ? { none: [] } : {});
  }
}

/** Of a group and version. */
function kindsIn(discovered: unknown): Record<string, unknown>[] {
  return isRecord(discovered) && Array.isArray(discovered.resources) ? discovered.resources.filter(isRecord) : [];
}

function isEstablished(definition: unknown): boolean {
  const status = isRecord(definition) && isRecord(definition.status) ? definition.status : {};
  const conditions = Array.isArray(status.conditions) ? status.conditions.filter(isRecord) : [];
  return conditions.some((c) => c.type === 'Established' && c.status === 'True');
}

function labelsOf(labels: unknown): Record<string, string> {
  const entries = isRecord(labels) ? Object.entries(labels) : [];
  return Object.fromEntries(entries.map(([key, value]) => [key, String(value)]));
}
