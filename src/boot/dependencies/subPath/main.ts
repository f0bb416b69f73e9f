/**
 * The helper that touches volumes of others: binds one part of one, or gives one to a group, and says on stdout what
 * became of it. It is killed at its caller's deadline. Not for people: the daemon starts it.
 */

import { writeSync } from 'node:fs';
import { argv, exit, stderr, stdout } from 'node:process';
import { messageOf } from '../../../machines/text/errors.ts';
import type { SubPathRequest } from '../../../ports/machine/mounter.ts';
import { runHelper } from '../mounts/mounter.ts';
import { bindSubPath } from './bind.ts';
import { type GroupRequest, giveToGroup } from './group.ts';

/** The caller's deadline comes first. */
const NO_DEADLINE_MS = 3_600_000;
/** A walk says so often how far it is. */
const PROGRESS_MS = 10_000;

function fieldsOf(text: string | undefined): Record<string, unknown> {
  const value: unknown = JSON.parse(text ?? '');
  if (typeof value !== 'object' || value === null) throw new Error('a request in JSON is wanted');
  return { ...value };
}
function partOf({ volume, subPath, target }: Record<string, unknown>): SubPathRequest {
  if (typeof volume !== 'string' || typeof subPath !== 'string' || typeof target !== 'string') {
    throw new Error('a request names volume, subPath and target');
  }
  return { volume, subPath, target, foreign: false };
}
function groupOf({ path, gid, onRootMismatch }: Record<string, unknown>): GroupRequest {
  if (typeof path !== 'string' || typeof gid !== 'number' || typeof onRootMismatch !== 'boolean') {
    throw new Error('a request names path, gid and onRootMismatch');
  }
  return { path, gid, onRootMismatch };
}

let files = 0;
let toldMs = performance.now();
function done(): void {
  files += 1;
  const nowMs = performance.now();
  if (nowMs - toldMs < PROGRESS_MS) return;
  toldMs = nowMs;
  // The walk waits for nothing, so nothing else would be written before its end.
  writeSync(stderr.fd, `${files}\n`);
}

try {
  const call = { timeoutMs: NO_DEADLINE_MS, signal: new AbortController().signal };
  const fields = fieldsOf(argv[3]);
  if (argv[2] === 'group') stdout.write(giveToGroup(groupOf(fields), done));
  else stdout.write(JSON.stringify(await bindSubPath(partOf(fields), (command, args) => runHelper(command, args, call))));
} catch (error) {
  stderr.write(messageOf(error));
  exit(1);
}
