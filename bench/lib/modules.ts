/** Whose code a sampled profile of the daemon shows: the part of the source that the innermost frame of a file belongs to. */
import { existsSync, readFileSync } from 'node:fs';
import { SourceMap } from 'node:module';
import { fileURLToPath } from 'node:url';

interface Frame {
  functionName: string;
  url: string;
  lineNumber: number;
  columnNumber: number;
}
export interface CpuProfile {
  nodes: readonly { id: number; callFrame: Frame; children?: readonly number[] }[];
  samples: readonly number[];
  timeDeltas: readonly number[];
}
export interface HeapNode {
  callFrame: Frame;
  selfSize: number;
  children: readonly HeapNode[];
}

/** The first row that fits names the part. Paths begin with the folder below the root. */
const PARTS: readonly (readonly [RegExp, string])[] = [
  [/xstate/, 'xstate'],
  [/^src\/actors\/supervision/, 'supervision and mailboxes'],
  [/grpc|protobuf|protoFile|node_modules\/long|dependencies\/cri/, 'calls of the runtime'],
  [/dependencies\/kube|machines\/kube\/(read|request)/, 'requests and watches of the API server'],
  [/dependencies\/(fs|within|mounts|subPath)|regularFile|ifThere/, 'files and mounts'],
  [/prom-client|pino|metrics|logging|recorder|src\/boot/, 'metrics, logs and the process itself'],
  [/^(src\/machines|packages)/, 'decisions: charts and functions'],
  [/^src\/actors/, 'actors'],
];
const COLLECTION = 'collection of the heap';
const NODE = 'Node: sockets, TLS, streams, timers';

const maps = new Map<string, SourceMap | null>();
function mapOf(url: string): SourceMap | null {
  const known = maps.get(url);
  if (known !== undefined) return known;
  const file = `${fileURLToPath(url)}.map`;
  const map = existsSync(file) ? new SourceMap(JSON.parse(readFileSync(file, 'utf8'))) : null;
  maps.set(url, map);
  return map;
}

/** Undefined: no file of the daemon. */
function partOf({ url, lineNumber, columnNumber }: Frame): string | undefined {
  if (!url.startsWith('file:')) return undefined;
  const entry = mapOf(url)?.findEntry(lineNumber, columnNumber);
  const source = entry !== undefined && 'originalSource' in entry ? entry.originalSource : url;
  const path = /(?:node_modules|src|packages|bench)\/.*$/.exec(source)?.[0] ?? source;
  return path.startsWith('bench') ? undefined : PARTS.find(([of]) => of.test(path))?.[1];
}

/** Shares of the time in which something ran. */
export function timeByPart(profile: CpuProfile): Map<string, number> {
  const byId = new Map(profile.nodes.map((node) => [node.id, node]));
  const part = new Map<number, string>();
  const walk = (id: number, above: string): void => {
    const node = byId.get(id);
    if (node === undefined) return;
    const here = node.callFrame.functionName === '(garbage collector)' ? COLLECTION : (partOf(node.callFrame) ?? above);
    if (node.callFrame.functionName !== '(idle)') part.set(id, here);
    for (const child of node.children ?? []) walk(child, here);
  };
  const [root] = profile.nodes;
  if (root !== undefined) walk(root.id, NODE);
  const out = new Map<string, number>();
  let all = 0;
  for (const [i, id] of profile.samples.entries()) {
    const of = part.get(id);
    const us = profile.timeDeltas[i] ?? 0;
    if (of === undefined || us < 0) continue;
    out.set(of, (out.get(of) ?? 0) + us);
    all += us;
  }
  return new Map([...out].map(([of, us]) => [of, us / all]));
}

/** Bytes that are held, by what allocated them. */
export function bytesByPart(head: HeapNode): Map<string, number> {
  const out = new Map<string, number>();
  const walk = (node: HeapNode, above: string): void => {
    const here = partOf(node.callFrame) ?? above;
    out.set(here, (out.get(here) ?? 0) + node.selfSize);
    for (const child of node.children) walk(child, here);
  };
  walk(head, NODE);
  return out;
}
