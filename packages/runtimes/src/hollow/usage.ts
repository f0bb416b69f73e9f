/** What a hollow container claims to use: constant, a wave or a ramp over time, as an annotation of its pod says. Pure. */
import { parseQuantity, quantityToMilli } from '@actorlet/kubelet/machines/kube/quantity.ts';
import { CODE, RuntimeRefusal } from '../shared/model.ts';

/** Pod annotation for each container of the pod; with `.NAME` appended, for that container alone. */
const USAGE_ANNOTATION = 'actorlet.dev/usage';

/** From `low` to `high` and back in `periodMs` (`wave`), or from `low` to `high` within it, and then as it is (`ramp`). */
export interface Curve {
  shape: 'constant' | 'wave' | 'ramp';
  low: number;
  high: number;
  periodMs: number;
}
export interface Usage {
  /** Cores. */
  cpu: Curve;
  /** Bytes. */
  memory: Curve;
}

const constant = (value: number): Curve => ({ shape: 'constant', low: value, high: value, periodMs: 1 });
/** 10 millicores and 1 MiB. */
export const DEFAULT_USAGE: Usage = { cpu: constant(0.01), memory: constant(2 ** 20) };

/** The value so long after the start. */
export function valueAt({ shape, low, high, periodMs }: Curve, ms: number): number {
  if (shape === 'wave') return low + ((high - low) * (1 - Math.cos((2 * Math.PI * ms) / periodMs))) / 2;
  return shape === 'ramp' ? low + (high - low) * Math.min(1, ms / periodMs) : low;
}

/** The value times milliseconds, summed from the start: processor time. */
export function sumTo({ shape, low, high, periodMs }: Curve, ms: number): number {
  const rise = high - low;
  if (shape === 'wave') return low * ms + (rise * (ms - (periodMs / (2 * Math.PI)) * Math.sin((2 * Math.PI * ms) / periodMs))) / 2;
  if (shape === 'constant') return low * ms;
  const climbing = Math.min(ms, periodMs);
  return low * ms + (rise * climbing * climbing) / (2 * periodMs) + rise * (ms - climbing);
}

const UNIT_MS: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000 };
const SHAPE = { '..': 'wave', '->': 'ramp' } as const;

/**
 * Reads `cpu=100m, memory=64Mi`; `cpu=100m..900m/10m` is a wave of ten minutes, `memory=64Mi->1Gi/30m` grows for half an hour.
 * @throws RuntimeRefusal that names what is wrong.
 */
export function parseUsage(text: string): Usage {
  const usage = { ...DEFAULT_USAGE };
  for (const part of text.split(',')) {
    const [key = '', value = ''] = part.split('=').map((word) => word.trim());
    if (key === '' && value === '') continue;
    if (key !== 'cpu' && key !== 'memory') throw refused(`unknown key ${JSON.stringify(key)}; known: cpu, memory`);
    usage[key] = curveOf(value);
  }
  return usage;
}

function curveOf(text: string): Curve {
  const [range = '', time = ''] = text.split('/').map((word) => word.trim());
  const between = (['..', '->'] as const).find((mark) => range.includes(mark));
  const [low, high] = (between === undefined ? [range, range] : range.split(between)).map((word) => amountOf(word.trim()));
  const [, count, unit = ''] = /^(\d+(?:\.\d+)?)(s|m|h)$/.exec(time) ?? [];
  const periodMs = Number(count) * (UNIT_MS[unit] ?? 0);
  if (low === undefined || high === undefined || (between === undefined ? time !== '' : !(periodMs > 0))) {
    throw refused(`${JSON.stringify(text)} is not a quantity, LOW..HIGH/PERIOD or FROM->TO/TIME`);
  }
  return between === undefined ? constant(low) : { shape: SHAPE[between], low, high, periodMs };
}

function amountOf(text: string): number | undefined {
  const amount = parseQuantity(text) === undefined ? -1 : quantityToMilli(text) / 1_000;
  return amount < 0 ? undefined : amount;
}

function refused(why: string): RuntimeRefusal {
  return new RuntimeRefusal(CODE.invalidArgument, `annotation ${USAGE_ANNOTATION}: ${why}`);
}

/** What the annotations of a pod say; `container`: its own word counts before that of the pod. */
export function annotatedUsage(annotations: Readonly<Record<string, string>> | undefined, container: string): Usage | undefined {
  const text = annotations?.[`${USAGE_ANNOTATION}.${container}`] ?? annotations?.[USAGE_ANNOTATION];
  return text === undefined ? undefined : parseUsage(text);
}
