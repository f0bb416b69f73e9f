/** What becomes of a configuration in either kubelet, in words that can be compared. */
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { loadConfig } from '../../../src/boot/config/load.ts';
import { runnable } from '../../../src/boot/config/runnable.ts';
import { validate } from '../../../src/boot/config/validate.ts';
import { parseFlags } from '../../../src/boot/flags/parse.ts';
import { createFeatureGates } from '../../../src/machines/config/gates.ts';
import { toV1beta1 } from '../../../src/machines/config/v1beta1.ts';
import { HERE, type Variant } from '../variants/variantParts.ts';

export interface Runs {
  /** By path in small letters. What is zero or empty is left out. */
  values: Readonly<Record<string, string>>;
  /** `unknown a.b`, `twice a.b`. */
  warned: readonly string[];
}
export type Answer = Runs | { refused: string };

/** Writes the files of a variant; they are gone when the scope ends. */
export function written(variant: Variant): Disposable & { dir: string; args: string[]; hide(text: string): string } {
  const dir = mkdtempSync(join(tmpdir(), 'variant-'));
  for (const [name, entry] of Object.entries(variant.files)) {
    const path = join(dir, name);
    mkdirSync(dirname(path), { recursive: true });
    if (typeof entry === 'string') writeFileSync(path, entry.replaceAll(HERE, dir));
    else if ('bytes' in entry) writeFileSync(path, entry.bytes, 'latin1');
    else if ('link' in entry) symlinkSync(entry.link, path);
    else mkdirSync(path, { recursive: true });
  }
  return {
    dir,
    args: [
      `--cert-dir=${dir}/pki`,
      `--root-dir=${dir}/root`,
      '--v=5',
      '--fail-cgroupv1=false',
      ...variant.args.map((arg) => arg.replaceAll(HERE, dir)),
    ],
    // A relative path of the reference stands against the working directory.
    hide: (text) => text.replaceAll(`${dir}/`, ''),
    [Symbol.dispose]: () => rmSync(dir, { recursive: true, force: true }),
  };
}

/** This node's. */
export async function actorletAnswer(variant: Variant): Promise<Answer> {
  using files = written(variant);
  const parsed = parseFlags(files.args, { cwd: files.dir });
  if (parsed.errors.length > 0) return { refused: files.hide(parsed.errors.join('; ')) };
  const loaded = await loadConfig(parsed.given, files.dir);
  const { gates, locked } = createFeatureGates(loaded.config.featureGates);
  const problems = [
    ...loaded.errors,
    ...validate({ ...loaded, config: runnable({ ...loaded, gates }).config, gates, given: parsed.given }),
  ].map(({ where, what }) => `${where}: ${what}`);
  const refused = [...problems, ...locked.map((name) => `feature gate ${name} is locked`)];
  if (refused.length > 0) return { refused: files.hide(refused.join('; ')) };
  const warned = loaded.warnings.flatMap(({ what }) => {
    const unknown = /^unknown field ([^ ;]+)/.exec(what)?.[1];
    const twice = /^(\S+) is there more than once/.exec(what)?.[1];
    return [...(unknown === undefined ? [] : [`unknown ${unknown}`]), ...(twice === undefined ? [] : [`twice ${twice}`])];
  });
  return { values: flat(toV1beta1(loaded.config), files.hide), warned: warned.sort() };
}

const NAMES: Readonly<Record<string, string>> = { resolverconfig: 'resolvconf' };
/** Chosen for the run, or written by the start itself. */
const OF_THE_RUN = /^(?:kind|apiversion|logging\.verbosity|staticpodurlheader.*)$/;

export function flat(value: unknown, hide: (text: string) => string): Record<string, string> {
  const out: Record<string, string> = {};
  const walk = (v: unknown, path: string): void => {
    if (typeof v === 'object' && v !== null) {
      for (const [key, item] of Object.entries(v)) {
        const name = key.toLowerCase();
        walk(item, path === '' ? (NAMES[name] ?? name) : `${path}.${name}`);
      }
    } else if (v !== null && v !== undefined && v !== '' && v !== 0 && v !== false && v !== '0s' && v !== '0' && !OF_THE_RUN.test(path)) {
      const text = hide(String(v));
      // The certificates that the reference makes for itself.
      if (!text.startsWith('pki/kubelet.')) out[path] = text;
    }
  };
  walk(value, '');
  return out;
}

/** What `answer` has otherwise than `base`; null where only `base` has it. */
export function changes(base: Readonly<Record<string, string>>, values: Readonly<Record<string, string>>): Record<string, string | null> {
  const out: Record<string, string | null> = {};
  for (const path of [...new Set([...Object.keys(base), ...Object.keys(values)])].sort())
    if (base[path] !== values[path]) out[path] = values[path] ?? null;
  return out;
}
