/** Objects of the cluster in which a fleet runs: manifests go there, and expectations look there. */

import { parseLabelSelector } from '@actorlet/kubelet/machines/kube/read/labelSelector.ts';
import { isKubeObject, type KubeFailure, type KubeObject, type KubeRequest } from '@actorlet/kubelet/machines/kube/request.ts';
import { isRecord } from '@actorlet/kubelet/machines/shape/conform.ts';
import type { KubeApi } from '@actorlet/kubelet/ports/kube.ts';
import type { ObjectsSpec } from '../spec/expect.ts';

const TIMEOUT_MS = 30_000;
const NOT_FOUND = 404;

interface Kind {
  apiVersion: string;
  kind: string;
}
interface Resource {
  name: string;
  namespaced: boolean;
}

/** @throws Error with the words of the API server, from each of its methods. */
export class Cluster {
  readonly #kube: KubeApi;
  readonly #signal: AbortSignal;
  /** By apiVersion and kind. */
  readonly #resources = new Map<string, Resource>();

  constructor(kube: KubeApi, signal: AbortSignal) {
    this.#kube = kube;
    this.#signal = signal;
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

  /** Creates it; one that is there becomes what the manifest says, where it says something. */
  async apply(object: KubeObject): Promise<void> {
    const path = await this.#pathOf(object);
    const { name } = object.metadata;
    const present = await this.#ask({ verb: 'GET', path: `${path}/${name}` });
    if (present === null) await this.#ask({ verb: 'POST', path, body: object });
    else await this.#ask({ verb: 'PATCH', path: `${path}/${name}`, patchType: 'merge', body: object });
  }

  async remove(object: KubeObject): Promise<void> {
    const path = await this.#pathOf(object);
    await this.#ask({ verb: 'DELETE', path: `${path}/${object.metadata.name}`, query: { propagationPolicy: 'Background' } });
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
      const all = isRecord(found) && Array.isArray(found.resources) ? found.resources.filter(isRecord) : [];
      const own = all.find((r) => r.kind === kind && !String(r.name).includes('/'));
      if (own === undefined) throw new Error(`this API server has no kind ${kind} of ${apiVersion}`);
      resource = { name: String(own.name), namespaced: own.namespaced === true };
      this.#resources.set(key, resource);
    }
    return resource.namespaced && namespace !== '' ? `${root}/namespaces/${namespace}/${resource.name}` : `${root}/${resource.name}`;
  }

  /** Null: there is no such object. */
  async #ask(request: KubeRequest): Promise<unknown> {
    const answer = await this.#kube.request(request, { timeoutMs: TIMEOUT_MS, signal: this.#signal });
    if (answer.ok) return answer.body;
    if (answer.failure.code === NOT_FOUND && request.verb !== 'POST') return null;
    throw new Error(`${request.verb} ${request.path}: ${wordsOf(answer.failure)}`);
  }
}

function wordsOf({ reason, message }: KubeFailure): string {
  return reason === '' ? message : `${reason}: ${message}`;
}

function labelsOf(labels: unknown): Record<string, string> {
  const entries = isRecord(labels) ? Object.entries(labels) : [];
  return Object.fromEntries(entries.map(([key, value]) => [key, String(value)]));
}
