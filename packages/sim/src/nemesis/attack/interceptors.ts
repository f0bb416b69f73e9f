/** Interceptors of one node: its runtime, disk, HTTP source and mailboxes ask here which lasting fault hits a call. */

import { apiSubject, type CriSubject, criSubject, FS_OPS, type FsCall } from '@actorlet/faults/src/subjects.ts';
import type { Select } from '@actorlet/faults/src/types.ts';
import type { MailboxTap } from '@actorlet/kubelet/machines/supervision/mailboxTap.ts';
import type { CriMethod } from '@actorlet/kubelet/machines/wire/criCalls.ts';
import { createMatcher, type Matcher } from '@actorlet/shown/src/match.ts';
import type { KubeVerdict, SimKube, WatchVerdict } from '@actorlet/world/src/kube/types.ts';
import type { SimNode } from '@actorlet/world/src/node/types.ts';
import type { SimRuntime, Verdict } from '@actorlet/world/src/runtime/types.ts';
import type { ActiveFaults } from './hits.ts';

export interface InterceptorOptions {
  node: SimNode;
  active: ActiveFaults;
  /** Some fault of the schedule is about mailboxes: only then each message is looked at. */
  mailboxes: boolean;
  /** A slow disk was met, with this delay. */
  slow(delayMs: number): void;
  /** A message to this actor was held back for so long, and what is sent to it meanwhile with it. */
  late(path: string, delayMs: number): void;
}

export function intercept(o: InterceptorOptions): void {
  const match = createMatcher();
  interceptRuntime(o, match);
  interceptDisk(o, match);
  interceptHttp(o);
  interceptMemory(o);
  interceptIptables(o);
  interceptKernelSettings(o);
  if (o.mailboxes) o.node.tap = mailboxTap(o, match);
}

function interceptRuntime({ node, active }: InterceptorOptions, match: Matcher): void {
  const { trouble } = node.runtime;
  trouble.verdict = (method, request): Verdict => {
    let subject: CriSubject | undefined;
    for (const f of active.of(node.index, 'cri')) {
      if (!match.one<CriMethod>(f.select.methods, method)) continue;
      if (selectsPods(f.select)) {
        subject ??= subjectIn(node.runtime, request);
        if (!matchesPod(match, f.select, subject)) continue;
      }
      if (!active.hit(f, f.action)) continue;
      if (f.action === 'delay') return { delayMs: f.delayMs };
      if (f.action === 'error') return { delayMs: 0, refuse: { code: f.code, details: `injected failure #${f.id}` } };
      if (f.action === 'late-effect') return { delayMs: 0, lost: 'late-effect', lateMs: f.delayMs };
      return { delayMs: 0, lost: f.action === 'lost-with-effect' ? 'with-effect' : 'without-effect' };
    }
    return { delayMs: 0 };
  };
  trouble.hint = (hint) => {
    for (const f of active.of(node.index, 'hints')) {
      if (!match.one(f.select.hints, hint.kind) || !active.hit(f, f.action)) continue;
      return f.action === 'delay' ? { delayMs: f.delayMs } : f.action;
    }
    return 'pass';
  };
}

function selectsPods(s: Select): boolean {
  return (s.namespaces?.length ?? 0) + (s.pods?.length ?? 0) + (s.containers?.length ?? 0) > 0;
}
function matchesPod(match: Matcher, s: Select, of: CriSubject): boolean {
  return match.any(s.namespaces, of.namespace) && match.any(s.pods, of.pod) && match.any(s.containers, of.container);
}
function subjectIn(runtime: SimRuntime, request: unknown): CriSubject {
  const { sandboxes, containers } = runtime.hollow.dump();
  const sandbox = (id: string) => {
    const found = sandboxes.find((s) => s.id === id);
    return found === undefined ? undefined : { namespace: found.namespace, pod: found.name };
  };
  const container = (id: string) => {
    const found = containers.find((c) => c.id === id);
    return found === undefined ? undefined : { ...sandbox(found.sandboxId), container: found.name };
  };
  return criSubject(request, { sandbox, container });
}

function interceptDisk({ node, active, slow }: InterceptorOptions, match: Matcher): void {
  const { trouble } = node.disk;
  const ordinary = trouble.delayMs;
  const group = (op: FsCall | 'write') => (op === 'write' ? 'write' : FS_OPS[op]);
  trouble.delayMs = (op, path) => {
    for (const f of active.of(node.index, 'disk.slow')) {
      if (!match.one(f.select.ops, group(op)) || !match.any(f.select.paths, path) || !active.hit(f, 'hit')) continue;
      slow(f.delayMs);
      return active.chanceOf(f).next() * f.delayMs;
    }
    return op === 'write' ? 0 : ordinary(op, path);
  };
  trouble.failing = (op, path) => {
    const kind = FS_OPS[op];
    for (const f of active.of(node.index, 'disk.error')) {
      // Reads fail only where that was asked for: a manifest that cannot be read is, after a restart, a pod nobody wants.
      if (f.select.ops === undefined ? kind === 'read' : !match.one(f.select.ops, kind)) continue;
      if (match.any(f.select.paths, path) && active.hit(f, kind)) return f.code;
    }
    return undefined;
  };
  trouble.full = (path) => active.of(node.index, 'disk.full').some((f) => match.any(f.select.paths, path) && active.hit(f, 'hit'));
  trouble.deaf = (path) => active.of(node.index, 'disk.deaf').some((f) => match.any(f.select.paths, path) && active.hit(f, 'hit'));
  // A mount is felt as a write to its mount point, an unmount as a removal.
  const mounts = node.mounts.trouble;
  mounts.delayMs = (op, path) => trouble.delayMs(op === 'unmount' ? 'rmdir' : 'writeFile', path);
  mounts.failing = (op, path) => trouble.failing(op === 'unmount' ? 'rmdir' : 'writeFile', path);
  trouble.availableBytes = (path) =>
    active.of(node.index, 'pressure.disk').find((f) => match.any(f.select.paths, path) && active.hit(f, 'hit'))?.availableBytes;
}

function interceptMemory({ node, active }: InterceptorOptions): void {
  const ordinary = node.memoryAvailable;
  node.memoryAvailable = () => active.of(node.index, 'pressure.memory').find((f) => active.hit(f, 'hit'))?.availableBytes ?? ordinary();
}

function interceptHttp({ node, active }: InterceptorOptions): void {
  const ordinary = node.http;
  node.http = () => {
    const f = active.of(node.index, 'http.down').find((fault) => active.hit(fault, fault.action));
    if (f === undefined) return ordinary();
    if (f.action === 'unreachable') return 'unreachable';
    return f.action === 'error' ? { status: 503, body: 'try later' } : { status: 200, body: '<html>' };
  };
}

function interceptIptables({ node, active }: InterceptorOptions): void {
  node.iptables.trouble = () => active.of(node.index, 'iptables').find((f) => active.hit(f, f.action))?.action ?? 'pass';
}

const SYSCTL_CODES = { unreadable: ['read', 'EIO'], readonly: ['write', 'EROFS'], forbidden: ['write', 'EPERM'] } as const;

function interceptKernelSettings({ node, active }: InterceptorOptions): void {
  node.kernelSettings.trouble = (operation) => {
    for (const f of active.of(node.index, 'sysctl')) {
      if (f.action === 'changed') continue;
      const [of, code] = SYSCTL_CODES[f.action];
      if (of === operation && active.hit(f, f.action)) return code;
    }
    return 'pass';
  };
}

/** The API server is one for all nodes of the world, so is its trouble: what is at work on any of them is at work. */
export function interceptKube(kube: SimKube, o: { active: ActiveFaults; nodes: number }): void {
  const match = createMatcher();
  const { active } = o;
  const all = <K extends 'api.call' | 'api.watch'>(kind: K) => Array.from({ length: o.nodes }, (_, node) => active.of(node, kind)).flat();
  kube.trouble.verdict = (request): KubeVerdict => {
    const found = all('api.call');
    if (found.length === 0) return { delayMs: 0 };
    const subject = apiSubject(request.query?.watch === 'true' ? { verb: 'watch', path: request.path } : request);
    for (const f of found) {
      const { verbs, resources, namespaces, pods } = f.select;
      if (!match.one(verbs, subject.verb) || !match.any(resources, subject.resource)) continue;
      if (!match.any(namespaces, subject.namespace) || !match.any(pods, subject.pod) || !active.hit(f, f.action)) continue;
      if (f.action === 'delay') return { delayMs: f.delayMs };
      if (f.action === 'error') return { delayMs: 0, refuse: { status: f.status } };
      if (f.action === 'late-effect') return { delayMs: 0, lost: 'late-effect', lateMs: f.delayMs };
      return { delayMs: 0, lost: f.action === 'lost-with-effect' ? 'with-effect' : 'without-effect' };
    }
    return { delayMs: 0 };
  };
  kube.trouble.line = (watch): WatchVerdict => {
    for (const f of all('api.watch')) {
      const { resource } = apiSubject({ verb: 'watch', path: watch.path });
      if (match.any(f.select.resources, resource) && active.hit(f, f.action))
        return f.action === 'delay' ? { delayMs: f.delayMs } : f.action;
    }
    return 'pass';
  };
}

function mailboxTap({ node, active, late }: InterceptorOptions, match: Matcher): MailboxTap {
  return (path, lane, event) => {
    for (const f of active.of(node.index, 'mailbox')) {
      const { actors, lanes, events } = f.select;
      if (!match.any(actors, path) || !match.one(lanes, lane) || !match.any(events, event.type)) continue;
      if (!active.hit(f, f.action)) continue;
      if (f.action !== 'delay') return f.action;
      late(path, f.delayMs);
      return { delayMs: f.delayMs };
    }
    return 'pass';
  };
}
