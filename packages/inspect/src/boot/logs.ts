/** The end of a container's log, for the page: what the kubelet's /containerLogs answers, bounded. */
import { text } from '@actorlet/kubelet/actors/edge/answers/answers.ts';
import { containerLogs } from '@actorlet/kubelet/actors/edge/https/logs/containerLogs.ts';
import type { Inspected } from '@actorlet/kubelet/actors/recorder/source.ts';
import { podsView } from '@actorlet/kubelet/machines/pods/manager/messages.ts';
import type { Ports } from '@actorlet/kubelet/ports/ports.ts';

const LINES_MAX = 500;
/** Bytes of an answer: the newest ones. */
const BYTES_MAX = 256 * 1024;
const TIMEOUT_MS = 5_000;

export interface LogsFrom {
  ports: Pick<Ports, 'fs' | 'sys' | 'clock'>;
  podLogsDir: string;
}

/** `pod`: its UID; `container`: its name; `previous`: the run before. */
export async function lastLines(
  node: Inspected,
  { ports, podLogsDir }: LogsFrom,
  asked: URLSearchParams,
): Promise<{ status: number; text: string }> {
  const record = node.tree.registry.read(podsView)?.value.records.get(asked.get('pod') ?? '');
  if (record === undefined) return { status: 404, text: '404: this pod is not on the node (any more)\n' };
  const { namespace, name } = record.pod.metadata;
  const query = new URLSearchParams({ tailLines: String(LINES_MAX), timestamps: 'true' });
  if (asked.has('previous')) query.set('previous', 'true');
  const ctx = { registry: node.tree.registry, log: node.log, ports };
  const answer = await containerLogs(
    { ctx, podLogsDir, find: () => ({ ok: true, value: record }) },
    { method: 'GET', query, signal: AbortSignal.timeout(TIMEOUT_MS) },
    [namespace, name, asked.get('container') ?? ''],
  ).catch((error: unknown) => text(`500: ${String(error)}\n`, 500));
  return { status: answer.status, text: await newest(answer.body) };
}

async function newest(body: string | Uint8Array | AsyncIterable<string | Uint8Array>): Promise<string> {
  if (typeof body === 'string') return body;
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of body instanceof Uint8Array ? [body] : body) {
    chunks.push(Buffer.from(chunk));
    size += chunk.length;
    while (size - (chunks[0]?.length ?? 0) > BYTES_MAX) size -= chunks.shift()?.length ?? 0;
  }
  return Buffer.concat(chunks).subarray(-BYTES_MAX).toString('utf8');
}
