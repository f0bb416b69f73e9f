/** What `--check` says of static pods: of each file of `staticPodPath`, and of the document at `staticPodURL`. Reads only. */

import { nodeNameOf } from '@actorlet/kubelet/actors/nodeFacts.ts';
import { type StaticSourceOptions, staticSourceOptions } from '@actorlet/kubelet/actors/pods/options.ts';
import { decodeDocument } from '@actorlet/kubelet/actors/pods/sources/document.ts';
import { listManifests } from '@actorlet/kubelet/actors/pods/sources/fileReader.ts';
import { MANIFEST_BYTES_MAX } from '@actorlet/kubelet/actors/pods/sources/manifest.ts';
import { createClock, createEntropy } from '@actorlet/kubelet/boot/dependencies/clock.ts';
import { createHostFs } from '@actorlet/kubelet/boot/dependencies/fs.ts';
import { createHost } from '@actorlet/kubelet/boot/dependencies/machine/host.ts';
import { httpGet } from '@actorlet/kubelet/boot/dependencies/net/netGet.ts';
import type { NodeConfig } from '@actorlet/kubelet/machines/config/config.ts';
import { podFields } from '@actorlet/kubelet/machines/pods/admission/supported.ts';
import type { Decoded } from '@actorlet/kubelet/machines/pods/sources/decode.ts';
import { applyListing, emptyFileStore, toSet } from '@actorlet/kubelet/machines/pods/sources/fileStore.ts';
import { messageOf } from '@actorlet/kubelet/machines/text/errors.ts';
import { shownUrl } from '@actorlet/kubelet/machines/text/shownUrl.ts';
import type { Documents } from '@actorlet/kubelet/ports/documents.ts';
import type { Finding } from './findings.ts';
import { type Judge, judgeOf, type PodsOfRuntime, UNKNOWN_RUNTIME } from './judge.ts';

const PATH = 'staticPodPath (--pod-manifest-path)';
const URL_FIELD = 'staticPodURL (--manifest-url)';
const URL_TIMEOUT_MS = 10_000;
const MEND = 'The kubelet may run it: mend it before the change, or its pod is stopped.';

/** Each document is read as the running node reads it, and each pod is judged as its pod manager and its runtime judge it. */
export async function checkPods(config: NodeConfig, runtime: PodsOfRuntime = UNKNOWN_RUNTIME): Promise<Finding[]> {
  const { fileSource, httpSource } = staticSourceOptions(config, nodeNameOf(config, { host: createHost() }));
  if (fileSource === null && httpSource === null) return [];
  const judge = await judgeOf(config, runtime);
  return [...(await files(fileSource, judge)), ...(await url(httpSource, judge))];
}

async function files(o: StaticSourceOptions['fileSource'], judge: Judge): Promise<Finding[]> {
  if (o === null) return [];
  const entropy = createEntropy();
  const decoded = new Map<string, Decoded>();
  const documents: Documents = {
    decode: async (bytes, source) => {
      const result = decodeDocument(bytes, source, entropy);
      decoded.set(source.where, result);
      return result;
    },
  };
  const ports = { fs: createHostFs(), documents, entropy, clock: createClock(), yield: { defer: setImmediate } };
  const listed = await listManifests({ ...o, ports, settled: new Map() }, emptyFileStore);
  if (listed.kind === 'missing') return [{ level: 'warning', where: PATH, what: `${o.path} is not there: no pod comes from it`, todo: '' }];
  if (listed.kind === 'failed')
    return [{ level: 'error', where: PATH, what: `${o.path}: ${listed.message}`, todo: 'No pod comes from it.' }];
  const found = listed.readings.flatMap((r): Finding[] => {
    if (r.kind === 'skipped') return [{ level: 'note', where: r.path, what: `it is left out: ${r.message}`, todo: '' }];
    return r.kind === 'changing' ? [{ level: 'warning', where: r.path, what: 'it is being written to: ask again', todo: '' }] : [];
  });
  const all = toSet(applyListing(emptyFileStore, listed.readings, false).store).errors;
  // Notes of what was read leniently are told with the pod.
  const errors = all.filter(({ where, message }) => decoded.get(where)?.ok !== true || message.includes('is already defined by'));
  found.push(
    ...errors.map(({ where, message }): Finding => ({ level: 'error', where, what: `no pod comes from it: ${message}`, todo: MEND })),
  );
  // A second file with a pod of the same name is among them.
  const without = new Set(errors.map(({ where }) => where));
  for (const [where, result] of decoded) if (result.ok && !without.has(where)) found.push(...becomes(where, result, judge));
  return found.length > 0 ? found : [{ level: 'note', where: PATH, what: `${o.path} holds no manifest`, todo: '' }];
}

async function url(o: StaticSourceOptions['httpSource'], judge: Judge): Promise<Finding[]> {
  if (o === null) return [];
  const where = `${URL_FIELD} ${shownUrl(o.url)}`;
  const bad = (what: string): Finding[] => [
    { level: 'error', where, what, todo: 'Its pods are stopped, unless it can be read when the node starts.' },
  ];
  try {
    const get = {
      headers: o.headers,
      timeoutMs: URL_TIMEOUT_MS,
      bytesMax: MANIFEST_BYTES_MAX,
      signal: AbortSignal.timeout(URL_TIMEOUT_MS),
    };
    const { status, body } = await httpGet(o.url, get);
    if (status !== 200) return bad(`it answers with status ${status}`);
    if (body.byteLength === 0) return bad('its answer is empty');
    const result = decodeDocument(body, { ...o, source: 'http', where: o.url }, createEntropy());
    return result.ok ? becomes(where, result, judge) : bad(result.errors.join('; '));
  } catch (error) {
    return bad(messageOf(error));
  }
}

/** What one document becomes. */
function becomes(where: string, { pods, notes }: Extract<Decoded, { ok: true }>, judge: Judge): Finding[] {
  return pods.map((pod): Finding => {
    const name = `pod ${pod.metadata.namespace}/${pod.metadata.name}`;
    const { leftAlone } = podFields(pod);
    const left = leftAlone.length === 0 ? '' : `; no effect on this node: ${leftAlone.join('; ')}`;
    const told = `${notes.length === 0 ? '' : `; read leniently: ${notes.join('; ')}`}${left}`;
    const refusal = judge(pod);
    if (refusal !== null) return { level: 'error', where, what: `${name} ${refusal}${told}`, todo: MEND };
    if (told === '') return { level: 'note', where, what: `${name} runs`, todo: '' };
    return { level: 'warning', where, what: `${name} runs${told}`, todo: 'It runs as with the kubelet; mend what is not meant.' };
  });
}
