/** The `exec` section of a kubeconfig user: which program gives the credentials. */
import { dirname, isAbsolute, resolve } from 'node:path';
import { isRecord } from '../../../machines/shape/conform.ts';

const EXEC_VERSIONS = ['client.authentication.k8s.io/v1', 'client.authentication.k8s.io/v1beta1'] as const;
type ExecVersion = (typeof EXEC_VERSIONS)[number];

export interface ExecConfig {
  apiVersion: ExecVersion;
  /** A path, or a name that is looked for in PATH. */
  command: string;
  args: readonly string[];
  /** Over the daemon's own environment. */
  env: readonly { name: string; value: string }[];
  installHint: string;
  provideClusterInfo: boolean;
}

/** @throws what `fail` throws, with the field and what is wrong, never with a value of `env`. */
export function parseExec(value: unknown, o: { path: string; at: string; fail(what: string): never }): ExecConfig {
  const { fail, at } = o;
  if (!isRecord(value)) return fail(`${at}: must be a mapping`);
  const text = (field: string): string => {
    const v = value[field];
    if (v === undefined || v === null) return '';
    return typeof v === 'string' ? v : fail(`${at}.${field}: must be text`);
  };
  const list = (field: string): unknown[] => {
    const v = value[field] ?? [];
    return Array.isArray(v) ? v : fail(`${at}.${field}: must be a list`);
  };
  const apiVersion = EXEC_VERSIONS.find((v) => v === value.apiVersion);
  if (apiVersion === undefined)
    return fail(`${at}.apiVersion: ${JSON.stringify(value.apiVersion ?? '')} is not one of ${EXEC_VERSIONS.join(', ')}`);
  const command = text('command');
  if (command === '') return fail(`${at}.command: required`);
  const mode = text('interactiveMode');
  if (mode === '' && apiVersion === EXEC_VERSIONS[0])
    return fail(`${at}.interactiveMode: required with ${apiVersion}: Never or IfAvailable`);
  if (mode === 'Always')
    return fail(`${at}.interactiveMode: Always cannot be honoured, nobody sits before a node agent; use Never or IfAvailable`);
  if (!['', 'Never', 'IfAvailable'].includes(mode))
    return fail(`${at}.interactiveMode: ${JSON.stringify(mode)} is not one of Never, IfAvailable, Always`);
  const args = list('args').map((a) => (typeof a === 'string' ? a : fail(`${at}.args: must be texts`)));
  const env = list('env').map((e, i) => {
    if (!isRecord(e) || typeof e.name !== 'string' || e.name === '' || /[=\0]/.test(e.name))
      return fail(`${at}.env[${i}].name: required, without =`);
    if (e.value !== undefined && typeof e.value !== 'string') return fail(`${at}.env[${i}].value: must be text`);
    return { name: e.name, value: e.value ?? '' };
  });
  return {
    apiVersion,
    // As the reference: what has a slash is a path from the kubeconfig's folder.
    command: command.includes('/') && !isAbsolute(command) ? resolve(dirname(o.path), command) : command,
    args,
    env,
    installHint: text('installHint').trim(),
    provideClusterInfo: value.provideClusterInfo === true,
  };
}
