/** What a lifecycle hook asks for, and how its end is judged (pod lifecycle 5.13). Pure. */
import type { LifecycleHandler } from '../../../kube/podTable.ts';
import { type HttpProbe, httpRequest, podAddress, type Wanted } from '../../../pod/probes/netRequests.ts';
import type { HookJob, HookOutcome } from './hookMachine.ts';

/** Minor version of the kubelet this node stands for. */
const HOOK_USER_AGENT = 'kube-lifecycle/1.36';
/** So much of what a hook's command says is shown in the container's status. */
const OUTPUT_CHARS_MAX = 1024;
const OUTPUT_BYTES_MAX = 4 * OUTPUT_CHARS_MAX;

export type HookKind = 'exec' | 'httpGet' | 'sleep' | 'invalid';

/** A hook that only opens a connection is no hook: the API takes it, and the reference has never run one. */
export function hookKind(handler: LifecycleHandler): HookKind {
  if (handler.exec !== undefined) return 'exec';
  if (handler.httpGet !== undefined) return 'httpGet';
  return handler.sleep === undefined ? 'invalid' : 'sleep';
}

export function hookRequest({ handler, pod, container, podIPs }: HookJob): Wanted<HttpProbe> {
  const { httpGet } = handler;
  if (httpGet === undefined) return { ok: false, message: 'not an HTTP hook' };
  return httpRequest(httpGet, { container, podIP: podAddress(pod, podIPs), userAgent: HOOK_USER_AGENT });
}

/** The same over plain HTTP, without what was meant for the other side of a TLS connection only. */
export function plainRequest(secure: HttpProbe): HttpProbe {
  const { Authorization: _, ...headers } = secure.headers;
  const url = new URL(secure.url);
  const port = url.port === '' ? '443' : url.port;
  url.protocol = 'http:';
  url.port = port;
  return { ...secure, url: url.href, headers };
}

export function judgeCommand(answer: { exitCode: number; stdout: Uint8Array; stderr: Uint8Array }): HookOutcome {
  if (answer.exitCode === 0) return { kind: 'done' };
  // A command may write as much as fits into a message of the runtime.
  const text = (bytes: Uint8Array): string => new TextDecoder().decode(bytes.subarray(0, OUTPUT_BYTES_MAX));
  const output = `${text(answer.stdout)}${text(answer.stderr)}`.trimEnd().slice(0, OUTPUT_CHARS_MAX);
  return { kind: 'failed', why: `command exited with code ${answer.exitCode}`, output };
}

export function hookFailed(why: string): HookOutcome {
  return { kind: 'failed', why, output: '' };
}
