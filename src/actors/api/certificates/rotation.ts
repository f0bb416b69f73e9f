/** The I/O behind one of the node's certificates: keys, files, and the requests to the API server. Holds the keys; they go nowhere else. */

import type { LookOutcome, SubmitOutcome } from '../../../machines/api/certificates/decide.ts';
import type { CertificateTemplate } from '../../../machines/api/certificates/messages.ts';
import {
  requestedWith,
  type SigningVersion,
  signingPath,
  signingRequest,
  submitProblem,
  type Verdict,
  verdictOf,
} from '../../../machines/api/certificates/signing.ts';
import { type CertificateFacts, type CertificateUse, SIGNERS, type Signer } from '../../../machines/api/certificates/template.ts';
import { readAnswer } from '../../../machines/kube/read/answers.ts';
import {
  decodeWatchLine,
  failureText,
  isKubeObject,
  type KubeRequest,
  type KubeResult,
  UNREADABLE,
} from '../../../machines/kube/request.ts';
import { isRecord } from '../../../machines/shape/conform.ts';
import { textOf } from '../../../machines/shape/lenient.ts';
import { messageOf } from '../../../machines/text/errors.ts';
import type { Certificates } from '../../../ports/certificates.ts';
import type { KubeApi } from '../../../ports/kube.ts';
import type { ActorCtx } from '../../supervision/types.ts';
import { API_TIMEOUT_MS, itemReader } from '../client.ts';
import { CertificateStore } from './store.ts';

/** The server ends a watch of a request after this. */
const WATCH_SECONDS = 300;

export class CertificateRotation {
  readonly #ctx: Pick<ActorCtx, 'ports' | 'log'>;
  readonly #use: CertificateUse;
  readonly #signer: Signer;
  readonly #certificates: Certificates;
  readonly #store: CertificateStore;
  /** In which the request under way was made. */
  #version: SigningVersion = 'v1';
  #draft: { key: Uint8Array; pem: string; name: string } | null = null;
  #facts: CertificateFacts | null = null;
  #forgetKey = false;
  #complained = '';

  constructor(ctx: Pick<ActorCtx, 'ports' | 'log'>, o: { use: CertificateUse; dir: string; certificates: Certificates }) {
    this.#ctx = ctx;
    this.#use = o.use;
    this.#signer = SIGNERS[o.use];
    this.#certificates = o.certificates;
    this.#store = new CertificateStore(ctx.ports.fs, { dir: o.dir, prefix: this.#signer.prefix });
  }

  /** Facts of the certificate on disk, ended or not; null without one. */
  get facts(): CertificateFacts | null {
    return this.#facts;
  }
  get file(): string {
    return this.#store.current;
  }

  async load(): Promise<CertificateFacts | null> {
    const pem = await this.#store.read();
    this.#facts = pem === null ? await this.#adopt() : this.#inspect(pem, this.#store.current);
    if (this.#facts !== null && this.#facts.notAfterMs > this.#ctx.ports.clock.wallMs()) await this.#writeKubeconfig();
    return this.#facts;
  }

  /** What an older kubelet left is used like a certificate of our own: it becomes one, and its files stay as they are. */
  async #adopt(): Promise<CertificateFacts | null> {
    const pem = await this.#store.readOlder();
    const facts = pem === null ? null : this.#inspect(pem, this.#store.older);
    if (pem === null || facts === null || facts.notAfterMs <= this.#ctx.ports.clock.wallMs()) return facts;
    await this.#store.write(pem, this.#ctx.ports.clock.wallMs());
    this.#ctx.log.info(
      { use: this.#use, from: this.#store.older, to: this.#store.current },
      'took over the certificate of an earlier node agent',
    );
    return facts;
  }

  /** A file that holds no usable pair is as good as none: another is asked for. */
  #inspect(pem: Uint8Array, file: string): CertificateFacts | null {
    try {
      this.#complained = '';
      return this.#certificates.inspect(pem, pem);
    } catch (error) {
      const why = `${file} cannot be used: ${messageOf(error)}; a new certificate is asked for`;
      if (why !== this.#complained) this.#ctx.log.error({ use: this.#use }, why);
      this.#complained = why;
      return null;
    }
  }

  /** The key of a refused request: the same request would be refused again. */
  forgetKey(): void {
    this.#forgetKey = true;
  }

  /**
   * A first request keeps its key on disk until it is answered, so that a node which is started again waits for the same
   * request instead of making another. A renewal has a new key each time, in memory only.
   */
  async prepare(template: CertificateTemplate, o: { first: boolean }): Promise<void> {
    this.#draft = null;
    if (this.#forgetKey) await this.#store.dropDraft();
    this.#forgetKey = false;
    const keeps = o.first && this.#use === 'client';
    const kept = keeps ? await this.#store.readDraft() : null;
    if (kept !== null) {
      const request = await this.#certificates.request(kept, { template, signer: this.#signer }).catch((error: unknown) => {
        this.#ctx.log.warn({ file: this.#store.draft }, `the key of the last request cannot be used: ${messageOf(error)}; another is made`);
        return null;
      });
      if (request !== null) {
        this.#draft = { key: kept, ...request };
        return;
      }
    }
    const key = await this.#certificates.generateKey();
    const request = await this.#certificates.request(key, { template, signer: this.#signer });
    if (keeps) await this.#store.writeDraft(key);
    this.#draft = { key, ...request };
  }

  async submit(o: { first: boolean; signal: AbortSignal }): Promise<SubmitOutcome> {
    const draft = this.#draft;
    if (draft === null) return { ok: false, problem: 'there is no key to ask with' };
    const name = o.first && this.#use === 'client' ? draft.name : null;
    const post = (version: SigningVersion) => {
      this.#version = version;
      const body = signingRequest({ pem: draft.pem, signer: this.#signer, name, version });
      return this.#call({ verb: 'POST', path: signingPath.all(version), body }, o.signal);
    };
    let made = await post('v1');
    if (!made.ok && made.failure.code === 404) made = await post('v1beta1');
    if (made.ok) return this.#accepted(made.body);
    if (name === null || made.failure.reason !== 'AlreadyExists')
      return { ok: false, problem: submitProblem(made.failure, { bootstrapping: this.#client() !== this.#ctx.ports.kube }) };
    const path = signingPath.one(this.#version, name);
    const found = await this.#call({ verb: 'GET', path }, o.signal);
    if (!found.ok) return { ok: false, problem: failureText({ verb: 'GET', path }, found.failure) };
    const asked = isKubeObject(found.body) ? requestedWith(found.body, this.#signer) : null;
    if (asked === null || !(await this.#certificates.sameRequest(asked, draft.pem)))
      return { ok: false, problem: `the certificate request ${name} is there already and asks for something else; remove it` };
    return this.#accepted(found.body);
  }
  #accepted(body: unknown): SubmitOutcome {
    if (!isKubeObject(body) || body.metadata.uid === undefined)
      return { ok: false, problem: 'the API server answered with no certificate request' };
    const { name, uid } = body.metadata;
    this.#ctx.log.info({ use: this.#use, csr: name }, 'asked for a certificate; waiting for it to be approved and signed');
    return { ok: true, name, uid };
  }

  async look(request: { name: string; uid: string }, signal: AbortSignal): Promise<LookOutcome> {
    const path = signingPath.all(this.#version);
    const found = await this.#call({ verb: 'GET', path, query: signingPath.selector(request.name) }, signal);
    if (!found.ok) return { ok: false, problem: failureText({ verb: 'GET', path }, found.failure) };
    const { body } = found;
    if (!isRecord(body) || !isRecord(body.metadata)) return { ok: false, problem: `GET ${path} gave no list` };
    const [item] = Array.isArray(body.items) ? body.items : [];
    const object = item === undefined ? null : itemReader(path)(item);
    const unreadable = object?.[UNREADABLE];
    if (unreadable !== undefined) return { ok: false, problem: `the certificate request ${request.name} cannot be read: ${unreadable}` };
    const resourceVersion = textOf(body.metadata.resourceVersion);
    return { ok: true, verdict: verdictOf(object, request), resourceVersion };
  }

  async follow(o: { name: string; uid: string; resourceVersion: string }, signal: AbortSignal): Promise<Verdict | null> {
    const query = {
      ...signingPath.selector(o.name),
      resourceVersion: o.resourceVersion,
      allowWatchBookmarks: 'true',
      timeoutSeconds: String(WATCH_SECONDS),
    };
    const path = signingPath.all(this.#version);
    const watch = await this.#client().watch({ path, query }, { timeoutMs: API_TIMEOUT_MS, signal });
    if (!watch.ok) throw new Error(failureText({ verb: 'GET', path }, watch.failure));
    for await (const line of watch.lines) {
      if (signal.aborted) return null;
      const decoded = decodeWatchLine(line, itemReader(path));
      // An old version, or a line that is none: looking anew tells.
      if (!decoded.ok || decoded.event === null) return null;
      const { type, object } = decoded.event;
      if (type === 'BOOKMARK') continue;
      const verdict = verdictOf(type === 'DELETED' ? undefined : object, o);
      if (verdict.kind !== 'pending') return verdict;
    }
    return null;
  }

  async store(pem: string): Promise<CertificateFacts> {
    const draft = this.#draft;
    if (draft === null) throw new Error('the key that the certificate was asked with is not there any more');
    const chain = new TextEncoder().encode(pem.endsWith('\n') ? pem : `${pem}\n`);
    let facts: CertificateFacts;
    try {
      facts = this.#certificates.inspect(chain, draft.key);
    } catch (error) {
      // Another look would find the same.
      this.#forgetKey = true;
      throw new Error(`the certificate that was signed cannot be used: ${messageOf(error)}`);
    }
    const both = new Uint8Array(chain.length + draft.key.length);
    both.set(chain);
    both.set(draft.key, chain.length);
    await this.#store.write(both, this.#ctx.ports.clock.wallMs());
    this.#facts = facts;
    this.#draft = null;
    await this.#writeKubeconfig();
    await this.#store.dropDraft().catch((error: unknown) => {
      this.#ctx.log.warn({ file: this.#store.draft }, `the key of the request cannot be removed: ${messageOf(error)}`);
    });
    return facts;
  }

  #kubeconfigWritten = false;
  /** After the certificate it refers to. */
  async #writeKubeconfig(): Promise<void> {
    const wanted = this.#use === 'client' ? (this.#certificates.client?.kubeconfig ?? null) : null;
    if (wanted === null || this.#kubeconfigWritten) return;
    await this.#ctx.ports.fs.mkdirp(wanted.path.slice(0, Math.max(1, wanted.path.lastIndexOf('/'))), 0o755);
    await this.#store.writeSecret(wanted.path, wanted.text);
    this.#kubeconfigWritten = true;
    this.#ctx.log.info({ kubeconfig: wanted.path }, 'wrote a kubeconfig that refers to the new client certificate');
  }

  /** With the present certificate, or while there is none with what the node was given to begin with. */
  #client(): KubeApi {
    const { kube, clock } = this.#ctx.ports;
    const bootstrap = this.#certificates.client?.bootstrap ?? null;
    const holds = this.#facts !== null && this.#facts.notAfterMs > clock.wallMs();
    if (this.#use === 'client' && !holds && bootstrap !== null) return bootstrap;
    if (kube === undefined) throw new Error('there is no API server in standalone mode');
    return kube;
  }
  async #call(request: KubeRequest, signal: AbortSignal): Promise<KubeResult> {
    return readAnswer(request, await this.#client().request(request, { timeoutMs: API_TIMEOUT_MS, signal }));
  }
}
