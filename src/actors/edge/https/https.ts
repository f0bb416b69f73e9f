/**
 * State held: a listening TLS port, answers of the API server about tokens and rights, last samples of statistics.
 * Lost on restart: requests and streams in progress, and all of the above.
 * Rebuilt from: the certificate files and the client CA; the API server is asked again.
 */

import { accessAttributes, forbiddenText, isBelow } from '../../../machines/edge/https/attributes.ts';
import { cipherList, curveList, type TlsVersion } from '../../../machines/edge/https/tls.ts';
import type { ServerEvent } from '../../../machines/edge/messages.ts';
import { messageOf } from '../../../machines/text/errors.ts';
import type { HttpReply, HttpRequest, TlsMaterial } from '../../../ports/sockets/net.ts';
import type { ActorCtx, ActorSpec } from '../../supervision/types.ts';
import { NOWHERE, text } from '../answers/answers.ts';
import { withRequestMetrics } from '../metrics/requestMetrics.ts';
import { naming, specOfServer } from '../server.ts';
import { METRICS_PATHS } from '../stats/figures.ts';
import { type AuthenticationOptions, createAuthenticator, isAnonymous } from './authenticate.ts';
import { type AuthorizationOptions, createAuthorizer } from './authorize.ts';
import { apiReviewer } from './reviews.ts';
import { type PagesOptions, pages } from './routes.ts';

export interface HttpsOptions extends PagesOptions {
  host: string;
  port: number;
  /** PEM files; both may be the same one. */
  certFile: string;
  keyFile: string;
  /** Certificates come from the cluster: while there are none, or they have ended, handshakes fail. Default false. */
  signedByCluster?: boolean;
  /** '' = client certificates are not asked for. */
  clientCaFile: string;
  minVersion: TlsVersion;
  /** Names as Go gives them; empty = the default list. */
  cipherSuites: readonly string[];
  /** `tlsCurvePreferences`. */
  curves: readonly number[];
  authentication: Omit<AuthenticationOptions, 'x509'>;
  authorization: Omit<AuthorizationOptions, 'nodeName'>;
  /** Gate KubeletFineGrainedAuthz. */
  fineGrained: boolean;
  /** Named in errors about the address. Default `--port`. */
  flag?: string;
}

const PEM_BYTES_MAX = 1024 * 1024;
/** No request here has a body worth the name, and one is read before it is known who sends it. */
const BODY_BYTES_MAX = 64 * 1024;
/** For those who were not looked at for want of room. */
const RETRY_AFTER_S = 1;

/** The kubelet's API (10250): TLS, authentication and authorization before anything is answered. */
export function httpsServerSpec(o: HttpsOptions): ActorSpec<ServerEvent> {
  const flag = o.flag ?? '--port';
  return specOfServer({ id: 'https', flag, server: (ctx) => tlsServer(ctx, o, flag) });
}

function tlsServer(ctx: ActorCtx<ServerEvent>, o: HttpsOptions, flag: string) {
  let used: TlsMaterial | null = null;
  let apply: ((material: TlsMaterial) => void) | null = null;
  const handler = apiHandler(ctx, o);
  return {
    listen: async () => {
      const material = await readMaterial(ctx, o);
      const at = {
        host: o.host,
        port: o.port,
        bodyBytesMax: BODY_BYTES_MAX,
        tls: {
          material,
          minVersion: o.minVersion,
          ciphers: cipherList(o.cipherSuites),
          curves: curveList(o.curves),
          renew: (fn: (material: TlsMaterial) => void) => {
            apply = fn;
          },
        },
      };
      const server = await naming(flag, () => ctx.ports.net.serveHttp(at, handler));
      used = material;
      return server;
    },
    refresh: async () => {
      let material: TlsMaterial;
      let unusable: unknown;
      try {
        material = await readMaterial(ctx, o);
        if (used !== null && sameMaterial(used, material)) return;
        apply?.(material);
      } catch (error) {
        if (used === null) throw error;
        // A client CA that cannot be used does not hold up a new serving pair: clients are judged by the last good one.
        material = await readMaterial(ctx, o, used.clientCa);
        if (sameMaterial(used, material)) throw error;
        apply?.(material);
        unusable = error;
      }
      used = material;
      ctx.log.info({ certificate: o.certFile, clientCA: o.clientCaFile }, 'https server: certificates changed; new connections use them');
      if (unusable !== undefined) throw unusable;
    },
  };
}

/** `lastCa`: used in place of the file. */
async function readMaterial(ctx: ActorCtx<ServerEvent>, o: HttpsOptions, lastCa?: Uint8Array | null): Promise<TlsMaterial> {
  const read = async (path: string, what: string): Promise<Uint8Array> => {
    try {
      return await ctx.ports.fs.readFile(path, { bytesMax: PEM_BYTES_MAX });
    } catch (error) {
      throw new Error(`${what} ${path} cannot be read: ${messageOf(error)}`, { cause: error });
    }
  };
  const clientCa = lastCa !== undefined ? lastCa : o.clientCaFile === '' ? null : await read(o.clientCaFile, 'the client CA');
  if (o.signedByCluster && !(await holds(ctx, o))) return { cert: NONE, key: NONE, clientCa };
  return { cert: await read(o.certFile, 'the serving certificate'), key: await read(o.keyFile, 'the private key'), clientCa };
}

const NONE = new Uint8Array(0);

/** There is a certificate and it has not ended. */
async function holds(ctx: ActorCtx<ServerEvent>, o: HttpsOptions): Promise<boolean> {
  const { fs, certificates, clock } = ctx.ports;
  try {
    const pem = await fs.readFile(o.certFile, { bytesMax: PEM_BYTES_MAX });
    return certificates !== undefined && certificates.inspect(pem, pem).notAfterMs > clock.wallMs();
  } catch {
    // Not there, or unusable: the certificate's own actor says what is wrong with it.
    return false;
  }
}

function sameMaterial(a: TlsMaterial, b: TlsMaterial): boolean {
  return sameBytes(a.cert, b.cert) && sameBytes(a.key, b.key) && sameBytes(a.clientCa, b.clientCa);
}
function sameBytes(a: Uint8Array | null, b: Uint8Array | null): boolean {
  if (a === null || b === null) return a === b;
  return Buffer.compare(a, b) === 0;
}

/** Authenticates, authorizes, then answers; in this order, and nothing before it but that a path is not known at all. */
function apiHandler(ctx: ActorCtx<ServerEvent>, o: HttpsOptions): (req: HttpRequest) => Promise<HttpReply> {
  const { ports } = ctx;
  const reviewer = ports.kube === undefined ? null : apiReviewer(ports.kube, ports);
  const authenticator = createAuthenticator({ ...o.authentication, x509: o.clientCaFile !== '' }, ports, reviewer, ctx.signal);
  const authorize = createAuthorizer({ ...o.authorization, nodeName: o.nodeName }, ports.clock, reviewer);
  const table = pages(ctx, o);
  const handle = async (req: HttpRequest, at: { path: string; name: string; parts: readonly string[] }): Promise<HttpReply> => {
    const page = table.get(at.name);
    if (page === undefined) return NOWHERE;
    const open = authenticator.impossible && isBelow(at.path, '/healthz');
    const refusal = open ? undefined : await admit(req, at.path);
    return refusal ?? page(req, at.parts);
  };
  const admit = async (req: HttpRequest, path: string): Promise<HttpReply | undefined> => {
    const who = await authenticator.authenticate(req);
    if (!who.ok) {
      ctx.log.debug({ method: req.method, page: path.split('/')[1], why: who.why }, 'a request to the API was not authenticated');
      if (who.busy === undefined) return text('Unauthorized', 401);
      const retry = { 'retry-after': String(RETRY_AFTER_S) };
      return who.busy === 'crowded'
        ? { ...text('429: too many requests of your address wait already\n', 429), headers: retry }
        : { ...text('503: your token could not be looked at in time\n', 503), headers: retry };
    }
    if (!isAnonymous(who.user)) req.authenticated?.();
    const asked = accessAttributes(req.method, path, { fineGrained: o.fineGrained });
    const verdict = await authorize(who.user, asked, req.signal);
    if (verdict.kind === 'allowed') return undefined;
    const refused = forbiddenText(who.user, asked);
    if (verdict.kind === 'denied') return text(refused, 403);
    ctx.log.warn({ user: who.user.name, why: verdict.why }, 'the rights of a client of the API could not be looked up; it is refused');
    return text(refused.replace(/^Forbidden/, 'Authorization error'), 500);
  };
  return withRequestMetrics(ports, { serverType: 'readwrite', known: [...table.keys(), ...METRICS_PATHS] }, async (req) => {
    const segments = req.path.split('/').filter((s) => s !== '');
    // Nothing here has such a name, so it can only be an attempt to leave the page's own folder.
    if (segments.some((s) => s === '.' || s === '..' || /[\\\0]/.test(s))) return text('400: Bad Request\n', 400);
    const [name = '', ...parts] = segments;
    return handle(req, { path: `/${segments.join('/')}`, name, parts });
  });
}
