/**
 * Asks the reference kubelet what becomes of every variant of a configuration, and keeps its answers in
 * configurations136.json. About two minutes; nothing is started:
 *   KUBEBUILDER_ASSETS=PROGRAMS scripts/node test/reference/answers/configurations.ts
 * With `--later` it also starts it, on a real containerd, with each that this node refuses and it has read: some minutes more,
 * as root, after `npm run e2e:setup`. With `--compare` it prints where this node answers otherwise, and keeps nothing.
 */
import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { program } from '../../e2e/lab/cluster/controlPlane.ts';
import type { Variant } from '../variants/variantParts.ts';
import { PLAIN, variants } from '../variants/variants.ts';
import { type Answer, changes, flat, written } from './configurationAnswers.ts';
import { compared, KEPT, type Kept, type KeptAnswer, PLAIN_ANSWER } from './configurationsKept.ts';
import { laterAnswers } from './configurationsLater.ts';

const AT_ONCE = 2;
const LIMIT_MS = 20_000;
const WORDS_MAX = 160;

async function referenceAnswer(kubelet: string, variant: Variant): Promise<Answer> {
  using files = written(variant);
  const child = spawn(kubelet, files.args, { cwd: files.dir, stdio: ['ignore', 'ignore', 'pipe'] });
  let log = '';
  const shown = (): unknown => configurationIn(log);
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    log += text;
    // The configuration is read and checked then. What follows would start a node.
    if (shown() !== undefined) child.kill('SIGKILL');
  });
  const limit = setTimeout(() => child.kill('SIGKILL'), LIMIT_MS);
  await new Promise((resolve) => child.once('close', resolve));
  clearTimeout(limit);
  const found = shown();
  if (found !== undefined) return { values: flat(found, files.hide), warned: warnings(log) };
  const error = /(?:command failed" err="|"command failed","err":"|^Error: )((?:[^"\\]|\\.)*)/m.exec(log)?.[1] ?? log.slice(-200);
  return { refused: files.hide(error.replaceAll('\\"', '"')) };
}

/** The object that it logs, in either format of logs. */
function configurationIn(log: string): unknown {
  const text = /"KubeletConfiguration" configuration=<\n([\s\S]*?)\n >/.exec(log)?.[1];
  if (text !== undefined) return JSON.parse(text);
  const line = log.split('\n').find((l) => l.includes('"msg":"KubeletConfiguration"') && l.endsWith('}'));
  if (line === undefined) return undefined;
  const { configuration } = JSON.parse(line);
  return typeof configuration === 'string' ? JSON.parse(configuration) : configuration;
}

function warnings(log: string): string[] {
  const strict = /"Using lenient decoding as strict decoding failed" err="((?:[^"\\]|\\.)*)"/.exec(log)?.[1]?.replaceAll('\\"', '"') ?? '';
  const unknown = [...strict.matchAll(/unknown field "([^"]*)"/g)].map((m) => `unknown ${m[1]}`);
  const twice = [...strict.matchAll(/(?:duplicate field|key) "([^"]*)"/g)].map((m) => `twice ${m[1]?.split('.').at(-1)}`);
  return [...new Set([...unknown, ...twice])].sort();
}

async function all(): Promise<Kept> {
  const kubelet = program('kubelet');
  const queue = [...variants()];
  const answers = new Map<string, Answer>();
  const worker = async (): Promise<void> => {
    for (let next = queue.shift(); next !== undefined; next = queue.shift()) answers.set(next[0], await referenceAnswer(kubelet, next[1]));
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  const plain = answers.get(PLAIN);
  if (plain === undefined || 'refused' in plain)
    throw new Error(`the reference does not read the plain configuration: ${JSON.stringify(plain)}`);
  const kept: Record<string, KeptAnswer> = {};
  for (const [name, answer] of [...answers].sort(([a], [b]) => (a < b ? -1 : 1))) {
    if ('refused' in answer) {
      kept[name] = answer.refused.replace(/, path: &TypeMeta\{.*$/, '').slice(0, WORDS_MAX);
      continue;
    }
    const base = name.includes('/') ? answers.get(name.split('/')[0] ?? '') : plain;
    kept[name] = [changes(base === undefined || 'refused' in base ? plain.values : base.values, answer.values), ...answer.warned];
  }
  return { [PLAIN_ANSWER]: plain.values, later: {}, answers: kept };
}

const kept = await all();
const otherwise = await compared(kept);
if (process.argv.includes('--later')) {
  const asked = variants();
  const refused = otherwise.flatMap(({ name, kind }) => (kind === 'refused here' && asked.has(name) ? [name] : []));
  kept.later = await laterAnswers(program('kubelet'), new Map([...asked].filter(([name]) => refused.includes(name))));
}
if (!process.argv.includes('--compare'))
  writeFileSync(join(import.meta.dirname, KEPT), `${JSON.stringify(kept).replaceAll('],"', '],\n"')}\n`);
for (const { name, kind, reference, actorlet } of otherwise)
  console.log(`${kind}: ${name}\n  reference: ${reference}\n  actorlet:  ${actorlet}`);
console.log(`${Object.keys(kept.answers).length} variants, ${otherwise.length} differences`);
