/** Faults in words. Pure. */
import { formatGoDuration } from '@actorlet/kubelet/machines/text/go/goDuration.ts';
import { GRPC_CODES } from './kinds.ts';
import type { FaultSpec, Scenario, ScenarioFault, Select } from './types.ts';

/** What it does: `cri delay 2s of StartContainer, pods web-*, with probability 0.5`. */
export function describeFault(f: FaultSpec): string {
  const parts = [f.kind, ...actionWords(f)].join(' ');
  const { methods, ...others } = f.select;
  const of = methods === undefined || methods.length === 0 ? [] : [`of ${methods.join(', ')}`];
  const select = Object.entries(others satisfies Omit<Select, 'methods'>).flatMap(([k, v]) =>
    v.length === 0 ? [] : [`${k} ${v.join(', ')}`],
  );
  const chance = f.probability === 1 ? [] : [`with probability ${Number(f.probability.toFixed(3))}`];
  const times = f.times === undefined ? [] : [`at most ${f.times} times`];
  return [[parts, ...of].join(' '), ...select, ...chance, ...times].join('; ');
}

function actionWords(f: FaultSpec): string[] {
  const delay = (ms: number) => (ms === 0 ? [] : [formatGoDuration(ms)]);
  switch (f.kind) {
    case 'cri':
      return [f.action, ...delay(f.delayMs), ...(f.action === 'error' ? [codeName(f.code)] : [])];
    case 'api.call':
      return [f.action, ...delay(f.delayMs), ...(f.action === 'error' ? [String(f.status)] : [])];
    case 'hints':
    case 'mailbox':
    case 'api.watch':
      return [f.action, ...delay(f.delayMs)];
    case 'iptables':
    case 'sysctl':
    case 'http.down':
      return [f.action];
    case 'disk.slow':
      return delay(f.delayMs);
    case 'disk.error':
      return [f.code];
    case 'clock.jump':
      return ['by', formatGoDuration(f.byMs)];
    case 'pressure.memory':
    case 'pressure.disk':
      return [`${f.availableBytes} bytes available`];
    case 'actor.kill':
      return f.pick === 'all' ? ['all'] : [];
    case 'node.kill':
      return [f.action, ...(f.downMs === 0 ? [] : ['for', ...delay(f.downMs)])];
    case 'node.stop':
      return f.downMs === 0 ? [] : ['for', ...delay(f.downMs)];
    case 'container.exit':
      return [`exit code ${f.exitCode}`, ...(f.reason === '' ? [] : [f.reason])];
    default:
      return [];
  }
}

export function codeName(code: number): string {
  return Object.entries(GRPC_CODES).find(([, c]) => c === code)?.[0] ?? `code ${code}`;
}

/** When: `at 10s for 30s every 1m0s`. */
export function describeWindow(f: ScenarioFault): string {
  const from =
    f.after === undefined ? `at ${formatGoDuration(f.atMs)}` : `${f.atMs === 0 ? '' : `${formatGoDuration(f.atMs)} `}after ${f.after}`;
  return [
    from,
    ...(f.forMs === undefined ? [] : [`for ${formatGoDuration(f.forMs)}`]),
    ...(f.everyMs === undefined ? [] : [`every ${formatGoDuration(f.everyMs)}`]),
    ...(f.count === undefined ? [] : [`${f.count} times`]),
    ...(f.nodes.length === 0 ? [] : [`on ${f.nodes.join(', ')}`]),
  ].join(' ');
}

/** One line a fault. */
export function describeScenario(s: Scenario): string[] {
  return s.faults.map((f) => `${f.name}: ${describeWindow(f)}: ${describeFault(f)}`);
}
