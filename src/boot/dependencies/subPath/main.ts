/**
 * The helper that touches volumes of others: binds one part of one, and says on stdout, in JSON, what became of it. It
 * is killed at its caller's deadline. Not for people: the daemon starts it.
 */
import { argv, exit, stderr, stdout } from 'node:process';
import type { SubPathRequest } from '../../../actors/kernel/mounter.ts';
import { runHelper } from '../mounter.ts';
import { bindSubPath } from './bind.ts';

/** The caller's deadline comes first. */
const NO_DEADLINE_MS = 3_600_000;

function requestOf(text: string | undefined): SubPathRequest {
  const value: unknown = JSON.parse(text ?? '');
  if (typeof value !== 'object' || value === null) throw new Error('a request in JSON is wanted');
  const { volume, subPath, target } = value as Record<string, unknown>;
  if (typeof volume !== 'string' || typeof subPath !== 'string' || typeof target !== 'string') {
    throw new Error('a request names volume, subPath and target');
  }
  return { volume, subPath, target, foreign: false };
}

try {
  const call = { timeoutMs: NO_DEADLINE_MS, signal: new AbortController().signal };
  const result = await bindSubPath(requestOf(argv[2]), (command, args) => runHelper(command, args, call));
  stdout.write(JSON.stringify(result));
} catch (error) {
  stderr.write(error instanceof Error ? error.message : String(error));
  exit(1);
}
