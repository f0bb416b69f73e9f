/** HTTP proxies on the way to a server: which one, and the agent that goes through it. */

import { Agent, type AgentOptions } from 'node:https';
import { BlockList, isIP } from 'node:net';
import { HttpsProxyAgent } from 'hpagent';

/** A proxy that does not open the way in this time is given up. */
const CONNECT_TIMEOUT_MS = 30_000;

type Env = Readonly<Record<string, string | undefined>>;

/**
 * `given`: of the kubeconfig, which counts alone. Else `HTTPS_PROXY`, except for hosts of `NO_PROXY` and this machine itself,
 * as programs in Go read them. Null: the way is direct. Throws without quoting the URL, which may hold a password.
 */
export function proxyOf(server: URL, given: URL | null, env: Env): URL | null {
  if (given !== null) return given;
  const text = env.HTTPS_PROXY || env.https_proxy || '';
  if (text === '' || !usesProxy(server, env.NO_PROXY || env.no_proxy || '')) return null;
  const url = proxyUrl(text.includes('://') ? text : `http://${text}`);
  if (url === null) throw new Error('HTTPS_PROXY is not the URL of an http or https proxy');
  return url;
}

/** A proxy's address. Null: the text names no proxy that this node can go through. */
export function proxyUrl(text: string): URL | null {
  const url = URL.parse(text);
  return url !== null && (url.protocol === 'http:' || url.protocol === 'https:') ? url : null;
}

const bare = (host: string): string => host.replace(/^\[|\]$/g, '').toLowerCase();

function usesProxy({ hostname, port }: URL, without: string): boolean {
  const host = bare(hostname);
  if (host === 'localhost' || isLoopback(host)) return false;
  return !without
    .split(',')
    .map((entry) => entry.trim().toLowerCase())
    .filter((entry) => entry !== '')
    .some((entry) => entry === '*' || matches(entry, { host, port: port || '443' }));
}

function isLoopback(host: string): boolean {
  return host === '::1' || (isIP(host) === 4 && host.startsWith('127.'));
}

/** A range, an address or a name, the last two with a port perhaps. A name stands for all below it, with a dot in front for these alone. */
function matches(entry: string, { host, port }: { host: string; port: string }): boolean {
  const range = /^([\da-f:.]+)\/(\d+)$/.exec(entry);
  if (range !== null) return isWithin(host, range[1] ?? '', Number(range[2]));
  const [, named = entry, only] = isIP(entry) === 6 ? [] : (/^(.*?)(?::(\d+))?$/.exec(entry) ?? []);
  if (only !== undefined && only !== port) return false;
  const name = bare(named);
  if (isIP(name) !== 0) return name === host;
  const below = name.startsWith('*.') ? name.slice(1) : name;
  return below.startsWith('.') ? host.endsWith(below) : host === below || host.endsWith(`.${below}`);
}

function isWithin(host: string, network: string, prefix: number): boolean {
  const family = isIP(network);
  if (family === 0 || isIP(host) !== family || prefix > (family === 4 ? 32 : 128)) return false;
  const list = new BlockList();
  const type = family === 4 ? 'ipv4' : 'ipv6';
  list.addSubnet(network, prefix, type);
  return list.check(host, type);
}

class ProxiedAgent extends HttpsProxyAgent {
  /** Given up by the library's own timer: its request to the proxy knows no signal. */
  override createConnection(...[options, done]: Parameters<Agent['createConnection']>): ReturnType<Agent['createConnection']> {
    return super.createConnection({ ...options, timeout: CONNECT_TIMEOUT_MS }, done);
  }
}

/** `proxy` null: the way is direct. */
export function agentThrough(proxy: URL | null, options: AgentOptions): Agent {
  return proxy === null ? new Agent(options) : new ProxiedAgent({ ...options, proxy });
}
