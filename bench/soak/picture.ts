/** Lines over time as one SVG: a row for each, with what happened as upright lines. Pure. */
import type { Point } from './trend.ts';

export interface Line {
  name: string;
  unit: string;
  points: readonly Point[];
  /** A word on it, for the right margin. */
  verdict: string;
  bad: boolean;
}
export interface Mark {
  hours: number;
  what: string;
}

const WIDTH = 1100;
const ROW = 110;
const LEFT = 150;
const RIGHT = 330;

const escaped = (text: string) => text.replace(/[&<>"]/g, (c) => `&#${c.charCodeAt(0)};`);

export function picture(o: { title: string; lines: readonly Line[]; marks: readonly Mark[]; hours: number }): string {
  const at = (hours: number) => LEFT + ((WIDTH - LEFT - RIGHT) * hours) / Math.max(o.hours, 1e-9);
  const rows = o.lines.map((line, i) => row(line, { top: 40 + i * ROW, at }));
  const bottom = 40 + o.lines.length * ROW;
  const marks = o.marks.map(
    ({ hours, what }) =>
      `<line x1="${at(hours).toFixed(1)}" x2="${at(hours).toFixed(1)}" y1="30" y2="${bottom}" stroke="#bbb"><title>${escaped(what)}</title></line>`,
  );
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${bottom + 20}" font-family="sans-serif" font-size="12">
<rect width="100%" height="100%" fill="#fff"/><text x="10" y="20" font-size="14">${escaped(o.title)}</text>
${marks.join('\n')}
${rows.join('\n')}
</svg>
`;
}

function row({ name, unit, points, verdict, bad }: Line, { top, at }: { top: number; at(hours: number): number }): string {
  const values = points.map((p) => p.value);
  const [least, most] = [Math.min(...values), Math.max(...values)];
  const y = (value: number) => top + (ROW - 25) * (1 - (value - least) / Math.max(most - least, 1e-9));
  const path = points.map((p, i) => `${i === 0 ? 'M' : 'L'}${at(p.hours).toFixed(1)} ${y(p.value).toFixed(1)}`).join('');
  const text = (value: number) => `${Math.round(value * 10) / 10} ${unit}`;
  return [
    `<text x="10" y="${top + 40}">${escaped(name)}</text>`,
    `<text x="${LEFT - 8}" y="${top + 10}" text-anchor="end" fill="#777">${escaped(text(most))}</text>`,
    `<text x="${LEFT - 8}" y="${top + ROW - 25}" text-anchor="end" fill="#777">${escaped(text(least))}</text>`,
    `<path d="${path}" fill="none" stroke="${bad ? '#c00' : '#06c'}"/>`,
    `<text x="${WIDTH - RIGHT + 10}" y="${top + 40}" fill="${bad ? '#c00' : '#333'}">${escaped(verdict)}</text>`,
  ].join('\n');
}
