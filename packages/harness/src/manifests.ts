/** What a test may call a manifest, read into the pods in it with the node's own decoder: what it refuses is refused here. */

import { createHash } from 'node:crypto';
import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseManifest } from '@actorlet/kubelet/actors/pods/sources/manifest.ts';
import type { Pod } from '@actorlet/kubelet/machines/kube/types.ts';
import { decodeManifest } from '@actorlet/kubelet/machines/pods/sources/decode.ts';
import { textOf } from '@actorlet/kubelet/machines/shape/lenient.ts';
import { readGivenSync } from '@actorlet/process/src/givenFile.ts';

/**
 * A Pod as an object; YAML or JSON text (anything with a line break or a brace in front); else the path of a file or
 * folder, or its `file:` URL. Text and files may hold several documents.
 */
export type Manifest = object | string | URL;

export interface ReadPod {
  /** As the manifest says, without the node's suffix. */
  name: string;
  namespace: string;
  /** What is written into the manifest folder. */
  text: string;
  file: string;
  /** With defaults, as the node will see it. */
  pod: Pod;
}
const SUFFIXES = /\.(ya?ml|json)$/;

export interface ReadOptions {
  nodeName: string;
  /** The node's manifest folder: part of a static pod's UID. */
  folder: string;
}

/** @throws Error with everything wrong, naming file, document and field. */
export function readManifests(manifest: Manifest, o: ReadOptions): ReadPod[] {
  return sourcesOf(manifest).flatMap(({ where, text }) =>
    documents(text).map((doc, i, all) => readOne(doc, { ...o, where: all.length > 1 ? `${where}, document ${i + 1}` : where })),
  );
}

function sourcesOf(manifest: Manifest): { where: string; text: string }[] {
  if (manifest instanceof URL) return filesAt(fileURLToPath(manifest));
  if (typeof manifest !== 'string') return [{ where: 'the manifest', text: JSON.stringify(manifest) }];
  if (/\n|^\s*\{/.test(manifest)) return [{ where: 'the manifest', text: manifest }];
  return filesAt(manifest);
}

function filesAt(path: string): { where: string; text: string }[] {
  try {
    if (!statSync(path).isDirectory()) return [{ where: path, text: readGivenSync(path) }];
    const names = readdirSync(path)
      .filter((name) => SUFFIXES.test(name))
      .sort();
    if (names.length === 0) throw new Error(`no .yaml, .yml or .json file in the folder ${path}`);
    return names.flatMap((name) => filesAt(join(path, name)));
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === undefined) throw error;
    throw new Error(
      `the manifest ${JSON.stringify(path)} cannot be read: ${message}. Text of a manifest is taken for a path when it is one line`,
    );
  }
}

/**
 * YAML allows `---` at the beginning of a line nowhere but between documents. Each keeps its place in the file through
 * empty lines in front, so that errors name the right line.
 */
function documents(text: string): string[] {
  if (/^\s*\{/.test(text)) return [text];
  const out: string[] = [];
  let at = 0;
  for (const part of text.split(/^---(?=\s)/m)) {
    const blank = part.split('\n').every((line) => /^\s*(#.*|%.*|\.\.\.)?\s*$/.test(line));
    if (!blank) out.push('\n'.repeat(at) + part);
    at += part.split('\n').length - 1;
  }
  return out.length === 0 ? [text] : out;
}

function readOne(text: string, o: ReadOptions & { where: string }): ReadPod {
  const parsed = parseManifest(Buffer.from(text));
  if (!parsed.ok) throw new Error(`${o.where}: ${parsed.message}`);
  // The name decides the file, and the file is a part of the UID.
  const named = record(record(parsed.value).metadata);
  const name = textOf(named.name);
  const namespace = typeof named.namespace === 'string' && named.namespace !== '' ? named.namespace : 'default';
  const file = join(o.folder, `${namespace}_${name}.yaml`);
  const decoded = decodeManifest(parsed.value, {
    source: 'file',
    where: file,
    nodeName: o.nodeName,
    md5Hex: (s) => createHash('md5').update(s).digest('hex'),
    // The daemon decides, by its gate.
    preventApiReferences: false,
  });
  if (!decoded.ok) throw new Error(decoded.errors.map((e) => `${o.where}: ${e}`).join('\n'));
  const [pod] = decoded.pods;
  if (pod === undefined) throw new Error(`${o.where}: no pod in it`);
  return { name, namespace, text, file, pod };
}

function record(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : {};
}
