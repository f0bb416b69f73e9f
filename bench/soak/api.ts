/** The embedded API server behind a network that can go: what a node's partition looks like from the node. */

import { type AddressInfo, createConnection, createServer, type Socket } from 'node:net';
import { connect } from 'node:tls';
import { type EmbeddedApi, startEmbeddedApi } from '@actorlet/fleet/src/boot/embedded/server.ts';
import type { KubeVerb, PatchType } from '@actorlet/kubelet/machines/kube/request.ts';
import { realClock } from '../../test/e2e/lab/ports.ts';

/** `silent`: nothing comes and nothing goes. `refused`: connections end, and none is made. */
export type Weather = 'well' | 'silent' | 'refused';

const CALL_MS = 10_000;

/** That of its authority, as PEM. */
function certificateAt(port: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host: '127.0.0.1', rejectUnauthorized: false }, () => {
      let of = socket.getPeerCertificate(true);
      while (of.issuerCertificate !== undefined && of.issuerCertificate.fingerprint256 !== of.fingerprint256) of = of.issuerCertificate;
      const { raw } = of;
      socket.end();
      resolve(Buffer.from(`-----BEGIN CERTIFICATE-----\n${raw.toString('base64').replace(/.{64}/g, '$&\n')}\n-----END CERTIFICATE-----\n`));
    });
    socket.once('error', reject);
  });
}

export class SoakApi {
  readonly kubeconfig: string;
  readonly #api: EmbeddedApi;
  readonly #server: ReturnType<typeof createServer>;
  readonly #open: Set<Socket>;
  #weather: Weather = 'well';

  private constructor(o: { api: EmbeddedApi; server: ReturnType<typeof createServer>; open: Set<Socket>; kubeconfig: string }) {
    this.#api = o.api;
    this.#server = o.server;
    this.#open = o.open;
    this.kubeconfig = o.kubeconfig;
  }

  static async start(seed: number): Promise<SoakApi> {
    const api = await startEmbeddedApi(realClock, seed);
    const port = Number(/https:\/\/127\.0\.0\.1:(\d+)/.exec(api.kubeconfig)?.[1]);
    const open = new Set<Socket>();
    const server = createServer((socket) => soak.#pass(socket, port));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const own = (server.address() as AddressInfo).port;
    // Earlier states of the node want to know whom they talk to.
    const trusted = { 'certificate-authority-data': (await certificateAt(port)).toString('base64') };
    const kubeconfig = JSON.parse(api.kubeconfig.replace(`:${port}`, `:${own}`)) as { clusters: { cluster: { server: string } }[] };
    for (const { cluster } of kubeconfig.clusters) Object.assign(cluster, trusted, { 'insecure-skip-tls-verify': undefined });
    const soak: SoakApi = new SoakApi({ api, server, open, kubeconfig: JSON.stringify(kubeconfig) });
    return soak;
  }

  #pass(socket: Socket, port: number): void {
    if (this.#weather === 'refused') return void socket.destroy();
    const upstream = createConnection({ port, host: '127.0.0.1' });
    for (const [one, other] of [
      [socket, upstream],
      [upstream, socket],
    ] as const) {
      this.#open.add(one);
      one.on('error', () => one.destroy());
      one.once('close', () => {
        this.#open.delete(one);
        other.destroy();
      });
      if (this.#weather === 'well') one.pipe(other);
    }
  }

  set weather(weather: Weather) {
    const before = this.#weather;
    this.#weather = weather;
    if (weather === 'silent') for (const socket of this.#open) socket.unpipe().pause();
    // What was silent does not go on: connections that stood still are made anew, as after a long partition.
    else if (weather === 'refused' || before !== 'well') for (const socket of this.#open) socket.destroy();
  }

  async ask<T>(
    verb: KubeVerb,
    path: string,
    o: { body?: object; query?: Record<string, string>; patchType?: PatchType } = {},
  ): Promise<T | null> {
    const signal = new AbortController().signal;
    const answer = await this.#api.admin.request({ verb, path, ...o }, { timeoutMs: CALL_MS, signal });
    if (answer.ok) return answer.body as T;
    if (answer.failure.code === 404) return null;
    throw new Error(`${verb} ${path}: ${answer.failure.message}`);
  }

  async stop(): Promise<void> {
    for (const socket of this.#open) socket.destroy();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
    await this.#api.close();
  }
}
