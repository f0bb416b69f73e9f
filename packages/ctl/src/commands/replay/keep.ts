/** `actorctl replay PATH --minimize`: cuts a recording down to one small file, and writes the test that runs it. */
import { existsSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { basename, dirname, join, relative, resolve } from 'node:path';
import { constants, zstdCompressSync } from 'node:zlib';
import { CtlError, EXIT } from '@actorlet/admin/src/client.ts';
import { messageOf } from '@actorlet/kubelet/machines/text/errors.ts';
import { printable } from '@actorlet/kubelet/machines/text/table.ts';
import type { Entry } from '@actorlet/replay/src/entries.ts';
import { type Minimized, minimize } from '@actorlet/replay/src/keep/minimize.ts';
import { silentLogger, silentMetrics } from '@actorlet/replay/src/player/silent.ts';
import type { CtlIo } from '../../io.ts';
import { inputFiles, openInputs, SUFFIX } from './file.ts';
import { surroundings } from './surroundings.ts';

export interface KeepOptions {
  path: string;
  json: boolean;
  pod: string | undefined;
  /** The recording that is written. */
  out: string | undefined;
  /** The test that is written, with the recording beside it. */
  toTest: string | undefined;
  runs: number;
}

const PARAMS = { [constants.ZSTD_c_compressionLevel]: 19, [constants.ZSTD_c_checksumFlag]: 1 };
/** What a test imports, from the folder of the checkout. */
const SUPPORT = 'packages/replay/test/regression.ts';

export async function runMinimize(io: CtlIo, o: KeepOptions): Promise<number> {
  const test = o.toTest === undefined ? null : testAt(o.toTest);
  const out = o.out ?? test?.recording;
  if (out === undefined) throw new CtlError(EXIT.usage, '--minimize: say with --out FILE or --to-test FILE where the result goes.');
  const files = await inputFiles(o.path);
  const [file] = files;
  if (file === undefined || files.length > 1)
    throw new CtlError(
      EXIT.usage,
      `${o.path}: ${files.length} recordings; name the one that shows it. Without --minimize, replay says which.`,
    );
  const small = await minimized(io, file, o);
  const bytes = zstdCompressSync(`${small.lines.join('\n')}\n`, { params: PARAMS });
  await written(out, bytes);
  if (test !== null) await written(test.file, testText(test, small));
  if (o.json)
    io.out(
      `${JSON.stringify({ file, out, test: test?.file ?? null, bytes: bytes.length, ...small, lines: small.lines.length }, null, 2)}\n`,
    );
  else io.out(shown(out, { small, bytes: bytes.length, test: test?.file }));
  return EXIT.ok;
}

async function minimized(io: CtlIo, file: string, o: KeepOptions): Promise<Minimized> {
  const { header, next, more } = await openInputs(file);
  const entries: Entry[] = [];
  for (let entry = next(); entry !== null; entry = next()) {
    entries.push(entry);
    await more();
  }
  try {
    return await minimize({
      header,
      entries() {
        let at = 0;
        return () => entries[at++] ?? null;
      },
      own: { log: silentLogger, metrics: silentMetrics },
      around: surroundings(io),
      ...{ pod: o.pod, runsMax: o.runs },
      on: ({ runs, lines }) => (io.columns > 0 ? io.err(`\rrun ${runs}: ${lines} lines   `) : undefined),
    });
  } catch (error) {
    throw error instanceof CtlError ? error : new CtlError(EXIT.no, `${file}: it cannot be cut down: ${messageOf(error)}.`);
  } finally {
    if (io.columns > 0) io.err('\r\u001b[K');
  }
}

function shown(out: string, o: { small: Minimized; bytes: number; test: string | undefined }): string {
  const { small } = o;
  const kept =
    small.divergence === null ? `the pod ends the same: ${small.end}` : `then: ${small.divergence.was}; now: ${small.divergence.now}`;
  return `${[
    `${out}: ${Math.ceil(o.bytes / 1024)} KiB, ${small.inputs.after} of ${small.inputs.before} inputs, ${small.pods.after} of ${small.pods.before} pods (${small.runs} runs)`,
    `  ${kept}`,
    ...small.remarks.map((remark) => `  ${remark}`),
    ...(o.test === undefined ? [] : [`${o.test}: npm run unit -- ${o.test}`]),
  ]
    .map(printable)
    .join('\n')}\n`;
}

async function written(path: string, what: string | Uint8Array): Promise<void> {
  try {
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, what, { mode: 0o600 });
  } catch (error) {
    throw new CtlError(EXIT.no, `${path} cannot be written: ${messageOf(error)}`);
  }
}

interface TestFile {
  file: string;
  recording: string;
  /** Of the support that it imports. */
  support: string;
}

/** Refuses a place where no test of a checkout can be. */
function testAt(path: string): TestFile {
  const file = resolve(path);
  if (!file.endsWith('.test.ts')) throw new CtlError(EXIT.usage, `--to-test ${path}: name it *.test.ts.`);
  for (let dir = dirname(file); dir !== dirname(dir); dir = dirname(dir)) {
    const support = join(dir, SUPPORT);
    if (!existsSync(support)) continue;
    const from = relative(dirname(file), support);
    return { file, recording: file.replace(/\.test\.ts$/, SUFFIX), support: from.startsWith('.') ? from : `./${from}` };
  }
  throw new CtlError(EXIT.usage, `--to-test ${path}: it must lie in a checkout of actorlet, below its folder test.`);
}

/** Formatted like the checkout's other tests: its lint reads it, too. */
export function testText(
  { recording, support }: Pick<TestFile, 'recording' | 'support'>,
  { divergence, end }: Pick<Minimized, 'divergence' | 'end'>,
): string {
  const what = divergence === null ? `ends as it did: ${end}` : `does what it did: ${divergence.was}`;
  return `/** Written by \`actorctl replay --to-test\`: a node of this checkout does again what is recorded beside this file. */
import { it } from 'vitest';
import { livesAgain } from '${support}';

it(${quoted(what)}, async () => {
  await livesAgain(new URL('./${basename(recording)}', import.meta.url));
});
`;
}

/** In the quotes that need fewer escapes; in single ones where both need as many. */
function quoted(text: string): string {
  const count = (quote: string): number => text.split(quote).length;
  const quote = count("'") > count('"') ? '"' : "'";
  return quote + JSON.stringify(text).slice(1, -1).replaceAll('\\"', '"').replaceAll(quote, `\\${quote}`) + quote;
}
