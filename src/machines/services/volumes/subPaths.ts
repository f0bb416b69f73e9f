/** Which parts of volumes a container mounts (resources and volumes 8.21). Pure. */
import type { Container } from '../../kube/podTable.ts';
import { EXEC_STRING_BYTES_MAX, expand } from '../../pod/execLimits.ts';
import type { PodVolume } from '../../pod/volumes/volumes.ts';
import { type Built, built, refused } from '../../result.ts';

/** One `volumeMounts[index]` of a container that wants a part of its volume only. */
export interface SubPathPart {
  /** Name in the pod. */
  volume: string;
  index: number;
  /** Relative, without `..`; never empty. */
  subPath: string;
}
export interface BoundPart extends Omit<SubPathPart, 'volume'> {
  volume: PodVolume;
  container: string;
}

/** An expression may name what makes it absolute, or lead out: looked at when it is expanded, not before. */
function problem(subPath: string): string | null {
  if (subPath.startsWith('/')) return `error SubPath \`${subPath}\` must not be an absolute path`;
  if (subPath.split('/').includes('..')) return `unable to provision SubPath \`${subPath}\`: must not contain '..'`;
  if (subPath.includes('\0')) return 'unable to provision SubPath: must not contain a zero byte';
  return null;
}

/** A variable that is missing or empty makes no path. */
function expanded(expression: string, variables: ReadonlyMap<string, string>): Built<string> {
  const missing = new Set<string>();
  const path = expand(expression, (name) => {
    const value = variables.get(name) ?? '';
    if (value === '') missing.add(name);
    return value;
  });
  if (path === null) return refused(`subPathExpr gives more than the ${EXEC_STRING_BYTES_MAX} bytes of one variable`);
  return missing.size === 0 ? built(path) : refused(`missing value for ${[...missing].sort().join(', ')}`);
}

/** `variables`: the container's environment; asked for only where an expression wants it. */
export function subPathParts(container: Container, variables: () => Built<ReadonlyMap<string, string>>): Built<SubPathPart[]> {
  const parts: SubPathPart[] = [];
  for (const [index, m] of (container.volumeMounts ?? []).entries()) {
    let subPath = m.subPath ?? '';
    const expression = m.subPathExpr ?? '';
    if (expression !== '') {
      const known = variables();
      if (!known.ok) return known;
      const result = expanded(expression, known.value);
      if (!result.ok) return result;
      subPath = result.value;
    }
    if (subPath === '') continue;
    const wrong = problem(subPath);
    if (wrong !== null) return refused(wrong);
    parts.push({ volume: m.name, index, subPath });
  }
  return built(parts);
}

/** One after the other, for as long as the question is open. */
export interface BindJob {
  ask: number;
  parts: readonly BoundPart[];
}
