/**
 * A seccomp profile as Docker and containers-common write them, as the OCI specification wants it: rules for other
 * processors, kernels and capabilities are left out. Pure but for reading the profile.
 */
import { readFileSync } from 'node:fs';
import { architecture } from '../images/layout.ts';

export const DEFAULT_PROFILES = ['/usr/share/containers/seccomp.json', '/etc/containers/seccomp.json'] as const;
const ARCHES: Readonly<Record<string, string>> = { amd64: 'SCMP_ARCH_X86_64', arm64: 'SCMP_ARCH_AARCH64', arm: 'SCMP_ARCH_ARM' };

interface Condition {
  arches?: string[] | null;
  caps?: string[] | null;
  minKernel?: string;
}
interface Rule {
  names?: string[];
  name?: string;
  includes?: Condition;
  excludes?: Condition;
  comment?: unknown;
  errno?: unknown;
  [more: string]: unknown;
}
interface Profile {
  archMap?: { architecture: string; subArchitectures?: string[] | null }[];
  architectures?: string[];
  syscalls?: Rule[];
  defaultErrno?: unknown;
  [more: string]: unknown;
}

/** @throws when it cannot be read. */
export function seccompOf(file: string, o: { caps: readonly string[]; kernel: string }): object {
  const { archMap, syscalls = [], defaultErrno: _words, ...rest } = JSON.parse(readFileSync(file, 'utf8')) as Profile;
  const own = ARCHES[architecture()];
  const mapped = archMap?.find((a) => a.architecture === own);
  const architectures = mapped === undefined ? rest.architectures : [mapped.architecture, ...(mapped.subArchitectures ?? [])];
  const rules = syscalls.filter((r) => applies(r.includes, o, true) && !applies(r.excludes, o, false));
  return {
    ...rest,
    ...(architectures === undefined ? {} : { architectures }),
    syscalls: rules.map(({ includes: _i, excludes: _e, comment: _c, errno: _n, name, names, ...rule }) => ({
      ...rule,
      names: names ?? (name === undefined ? [] : [name]),
    })),
  };
}

/** `includes` need all of their conditions, `excludes` any. */
function applies(c: Condition | undefined, o: { caps: readonly string[]; kernel: string }, all: boolean): boolean {
  const checks: boolean[] = [];
  if ((c?.arches ?? []).length > 0) checks.push((c?.arches ?? []).includes(architecture()));
  if ((c?.caps ?? []).length > 0) checks.push((c?.caps ?? [])[all ? 'every' : 'some']((cap) => o.caps.includes(cap)));
  if (c?.minKernel) checks.push(!before(o.kernel, c.minKernel));
  return all ? checks.every(Boolean) : checks.some(Boolean);
}

function before(kernel: string, than: string): boolean {
  const [a, b] = [kernel, than].map((v) => v.split('.').map((n) => Number.parseInt(n, 10))) as [number[], number[]];
  return (a[0] ?? 0) < (b[0] ?? 0) || (a[0] === b[0] && (a[1] ?? 0) < (b[1] ?? 0));
}
