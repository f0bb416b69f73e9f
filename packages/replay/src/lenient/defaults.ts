/** Answers to calls of which a recording knows nothing: those of a machine on which nothing else is. */
import { CriError } from '@actorlet/kubelet/ports/ports.ts';
import type { Otherwise } from './lenient.ts';

const UNAVAILABLE = 14;
const UNTOLD = 'the recording does not tell';
const WRITES: ReadonlySet<string> = new Set(
  ['writeFile', 'rename', 'fsyncDir', 'symlink', 'chmod', 'unlink', 'rmdir'].map((name) => `fs.${name}`),
);

export const defaultAnswers: Otherwise = (name, args) => {
  if (WRITES.has(name)) return { result: Promise.resolve(undefined) };
  if (name === 'fs.mkdirp') return { result: Promise.resolve(true) };
  if (name.startsWith('fs.')) return { result: Promise.reject(missing(String(args[0]))) };
  if (name === 'cri.call')
    return { result: Promise.reject(new CriError({ method: String(args[0]), code: UNAVAILABLE, outcome: 'failed', details: UNTOLD })) };
  if (name === 'kube.request' || name === 'kube.watch')
    return { result: Promise.resolve({ ok: false, failure: { code: 0, reason: 'Unreachable', message: UNTOLD } }) };
  return undefined;
};

function missing(path: string): Error {
  return Object.assign(new Error(`ENOENT: ${path}`), { code: 'ENOENT' });
}
