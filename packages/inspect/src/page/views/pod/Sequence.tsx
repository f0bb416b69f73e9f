/** Messages about one pod as a sequence diagram: a line per actor, an arrow per message, time downwards. */
import type { RecorderEntry } from '@actorlet/kubelet/machines/recorder/recorderEntry.ts';
import { clock } from '../../words.ts';

const COLUMN_PX = 132;
const ROW_PX = 26;
const LEFT_PX = 96;
const HEAD_PX = 34;
const SHOWN_MAX = 60;

export function Sequence({ messages, uid, name }: { messages: readonly RecorderEntry[]; uid: string; name: string }) {
  const shown = messages.slice(-SHOWN_MAX);
  if (shown.length === 0) return <p className="quiet">The flight recorder holds none (any more).</p>;
  const actors = [...new Set(shown.flatMap((m) => [m.from || 'outside', shortPath(m.path, uid)].map((p) => shortPath(p, uid))))];
  const x = (path: string) => LEFT_PX + COLUMN_PX / 2 + actors.indexOf(shortPath(path, uid)) * COLUMN_PX;
  const width = LEFT_PX + actors.length * COLUMN_PX;
  const height = HEAD_PX + shown.length * ROW_PX + 10;
  return (
    <div className="scroll sequence">
      <svg width={width} height={height} role="img" aria-label={`${shown.length} messages between ${actors.length} actors`}>
        {actors.map((a) => (
          <g key={a}>
            <line className="life" x1={x(a)} x2={x(a)} y1={HEAD_PX - 8} y2={height} />
            <text className="who" x={x(a)} y={16} textAnchor="middle">
              {wordOf(a, uid, name)}
              <title>{a}</title>
            </text>
          </g>
        ))}
        {shown.map((m, i) => {
          const [from, to] = [x(m.from || 'outside'), x(m.path)];
          const y = HEAD_PX + i * ROW_PX + 14;
          const before = shown[i - 1];
          return (
            <g key={m.n} className="message">
              {(before === undefined || clock(before.atMs) !== clock(m.atMs)) && (
                <text className="when" x={4} y={y + 4}>
                  {clock(m.atMs)}
                </text>
              )}
              {from === to ? (
                <path className="arrow" d={`M${from},${y - 6} h22 v12 h-18`} />
              ) : (
                <line className="arrow" x1={from} x2={to - Math.sign(to - from) * 5} y1={y} y2={y} />
              )}
              <path className="arrow-tip" d={from === to ? tip(from + 4, y + 6, -1) : tip(to, y, Math.sign(to - from))} />
              <text
                className="what"
                x={from === to ? from + 28 : (from + to) / 2}
                y={from === to ? y + 4 : y - 4}
                textAnchor={from === to ? 'start' : 'middle'}
              >
                {m.what}
              </text>
              <title>{[`${m.what} ${m.detail}`, ...m.causes.map((c) => `${c.what} (${c.by})`)].join('\n')}</title>
            </g>
          );
        })}
      </svg>
    </div>
  );
}

function shortPath(path: string, uid: string): string {
  // The pod's own actors are one line, whichever of them it is.
  return path === 'node/pods/workers' ? `node/pods/workers/${uid}` : path;
}
function wordOf(path: string, uid: string, name: string): string {
  if (path.endsWith(uid)) return name.length > 18 ? `${name.slice(0, 17)}…` : name;
  const last = path.slice(path.lastIndexOf('/') + 1);
  return last.length > 18 ? `${last.slice(0, 17)}…` : last;
}
function tip(x: number, y: number, way: number): string {
  return `M${x},${y} l${-7 * way},-4 v8 Z`;
}
