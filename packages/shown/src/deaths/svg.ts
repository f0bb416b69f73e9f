/** A picture of the minutes before a death: states, calls of the runtime, memory, events. Pure. */
import { clockTime, shortDuration } from '@actorlet/kubelet/machines/text/duration.ts';
import type { DeathBundle } from './bundle.ts';
import { escapedHtml } from './escapedHtml.ts';
import { bytesText } from './figures.ts';

const WIDTH = 960;
const LEFT = 150;
const ROW = 26;
const TOP = 34;
/** Shown before the death at most; what is older stands at the left edge. */
const SPAN_MS_MAX = 600_000;
const SPAN_MS_MIN = 2_000;
const CALL_ROWS_MAX = 8;

interface Axis {
  fromMs: number;
  toMs: number;
  x(atMs: number): number;
}

export function timelineSvg(b: DeathBundle): string {
  const axis = axisOf(b);
  const rows: { name: string; drawn: string }[] = [];
  const add = (name: string, drawn: string): void => {
    if (drawn !== '') rows.push({ name, drawn });
  };
  add('worker', bars(stepsOf(b), axis, 'step'));
  for (const [name, spans] of containersOf(b)) add(name, bars(spans, axis, 'run'));
  for (const [name, spans] of callsOf(b)) add(name, bars(spans, axis, 'call'));
  add('memory', memoryLine(b, axis));
  add('events', dots(b, axis));
  const height = TOP + rows.length * ROW + 30;
  const body = rows
    .map(
      ({ name, drawn }, i) =>
        `<g transform="translate(0 ${TOP + i * ROW})"><text class="name" x="${LEFT - 8}" y="14">${escapedHtml(short(name, 20))}</text>${drawn}</g>`,
    )
    .join('');
  const at = axis.x(b.head.atMs).toFixed(1);
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" role="img" aria-label="The time before the death">`,
    `<text x="${LEFT}" y="16">${escapedHtml(clockTime(axis.fromMs))}</text>`,
    `<text x="${WIDTH - 8}" y="16" text-anchor="end">${escapedHtml(clockTime(axis.toMs))}, ${escapedHtml(shortDuration(axis.toMs - axis.fromMs))} in all</text>`,
    `<line class="death" x1="${at}" y1="${TOP - 8}" x2="${at}" y2="${height - 22}"/>`,
    body,
    `<text class="deathname" x="${at}" y="${height - 8}" text-anchor="end">death</text>`,
    '</svg>',
  ].join('');
}

function axisOf(b: DeathBundle): Axis {
  const { atMs } = b.head;
  const begins = [
    b.death.end?.startedAtMs ?? 0,
    b.steps[0]?.atMs ?? 0,
    b.calls[0]?.startMs ?? 0,
    b.usage[0]?.atMs ?? 0,
    b.death.sinceMs ?? 0,
  ].filter((t) => t > 0);
  const first = Math.min(atMs - SPAN_MS_MIN, ...begins);
  const fromMs = Math.max(first, atMs - SPAN_MS_MAX);
  const toMs = Math.max(atMs, Math.min(b.keptAtMs, atMs + SPAN_MS_MAX));
  const perMs = (WIDTH - LEFT - 8) / Math.max(1, toMs - fromMs);
  return { fromMs, toMs, x: (t) => LEFT + (Math.min(toMs, Math.max(fromMs, t)) - fromMs) * perMs };
}

interface Bar {
  fromMs: number;
  toMs: number;
  text: string;
  bad: boolean;
}

function bars(spans: readonly Bar[], axis: Axis, kind: string): string {
  return spans
    .filter(({ toMs, fromMs }) => toMs >= axis.fromMs && fromMs <= axis.toMs)
    .map(({ fromMs, toMs, text, bad }) => {
      const [x, end] = [axis.x(fromMs), axis.x(toMs)];
      const width = Math.max(2, end - x);
      const shown = width > 7 * 4 ? `<text x="${(x + 4).toFixed(1)}" y="14">${escapedHtml(short(text, Math.floor(width / 7)))}</text>` : '';
      const title = `${text}, ${shortDuration(toMs - fromMs)} from ${clockTime(fromMs)}`;
      return `<g><title>${escapedHtml(title)}</title><rect class="${kind}${bad ? ' bad' : ''}" x="${x.toFixed(1)}" y="2" width="${width.toFixed(1)}" height="${ROW - 8}" rx="3"/>${shown}</g>`;
    })
    .join('');
}

function stepsOf({ steps, keptAtMs }: DeathBundle): Bar[] {
  return steps.map(({ atMs, to, reason }, i) => ({
    fromMs: atMs,
    toMs: steps[i + 1]?.atMs ?? keptAtMs,
    text: `${to}${reason === '' ? '' : ` (${reason})`}`,
    bad: /fail|error|away|again/i.test(to),
  }));
}

function containersOf({ containers, keptAtMs }: DeathBundle): [string, Bar[]][] {
  const names = [...new Set(containers.map(({ name }) => name))].slice(0, CALL_ROWS_MAX);
  return names.map((name) => {
    const own = containers.filter((span) => span.name === name);
    return [
      name,
      own.map(({ fromMs, state, reason, lastExit }, i) => ({
        ...{ fromMs, toMs: own[i + 1]?.fromMs ?? keptAtMs },
        text: [state, reason, state === 'running' ? '' : lastExit].filter((part) => part !== '').join(', '),
        bad: state !== 'running' && (lastExit !== '' || /BackOff|Err/.test(reason)),
      })),
    ];
  });
}

function callsOf({ calls, keptAtMs }: DeathBundle): [string, Bar[]][] {
  const methods = [...new Set(calls.map(({ method }) => method))].slice(0, CALL_ROWS_MAX);
  return methods.map((method) => [
    method,
    calls
      .filter((call) => call.method === method)
      .map(({ startMs, endMs, about, error }) => ({
        ...{ fromMs: startMs, toMs: endMs ?? keptAtMs },
        text: `${method} ${about}${endMs === null ? ', no answer' : ''}${error === '' ? '' : `: ${error}`}`,
        bad: error !== '' || endMs === null,
      })),
  ]);
}

/** Memory of the container, up to its limit or the most that was measured. */
function memoryLine({ usage, head, group }: DeathBundle, axis: Axis): string {
  const own = usage.filter((s) => s.container === head.container && s.memoryBytes !== null && s.atMs >= axis.fromMs);
  if (own.length < 2) return '';
  const most = Math.max(1, group?.maxBytes ?? 0, ...own.map((s) => s.memoryBytes ?? 0));
  const points = own.map((s) => `${axis.x(s.atMs).toFixed(1)},${(ROW - 6 - ((s.memoryBytes ?? 0) / most) * (ROW - 10)).toFixed(1)}`);
  const last = own.at(-1);
  return `<g><title>${escapedHtml(`${bytesText(last?.memoryBytes ?? 0)} at ${clockTime(last?.atMs ?? 0)}`)}</title><polyline class="memory" points="${points.join(' ')}"/></g>`;
}

function dots({ events }: DeathBundle, axis: Axis): string {
  return events
    .filter(({ atMs }) => atMs >= axis.fromMs && atMs <= axis.toMs)
    .map(
      ({ atMs, type, reason, message }) =>
        `<g><title>${escapedHtml(`${clockTime(atMs)} ${reason}: ${message}`)}</title><circle class="event${type === 'Warning' ? ' bad' : ''}" cx="${axis.x(atMs).toFixed(1)}" cy="11" r="5"/></g>`,
    )
    .join('');
}

function short(text: string, charsMax: number): string {
  return text.length > charsMax ? `${text.slice(0, Math.max(1, charsMax - 1)).toWellFormed()}…` : text;
}
