/** `actorctl --recording FILE html`: the page with a recording in it, one file that any browser opens without a server. */
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { CtlError, EXIT } from '@actorlet/admin/src/client.ts';
import { LIFE_FRAME } from '@actorlet/inspect/src/feed/podDetail.ts';
import { type PageFile, pageFiles } from '@actorlet/inspect/src/server/files.ts';
import type { CtlIo } from '../../io.ts';
import { openRecording } from './recording.ts';

const packed = promisify(gzip);

export async function runHtml(
  io: CtlIo,
  o: { file: string; at: string },
  files: ReadonlyMap<string, PageFile> = pageFiles(),
): Promise<number> {
  if (io.columns > 0) throw new CtlError(EXIT.usage, 'html writes a page of some MB: send it to a file, as in `> incident.html`.');
  const { segments, atMs, remarks } = await openRecording(o.file, o.at);
  for (const remark of remarks) io.err(`${remark}\n`);
  const { script, style, layout } = await builtPage(files);
  const meta = JSON.stringify({ startMs: atMs, life: LIFE_FRAME, segments: segments.length });
  const data: (readonly [string, Uint8Array | string])[] = [
    ['meta', meta],
    ['layout', layout],
    ...segments.map((bytes, i) => [`segment-${i}`, bytes] as const),
  ];
  io.out(head({ script, style }));
  for (const [name, bytes] of data) {
    io.out(`<script type="text/plain" id="actorlet-${name}">${(await packed(bytes)).toString('base64')}</script>\n`);
  }
  io.out(`<script type="module">${script}</script>\n</body></html>\n`);
  return EXIT.ok;
}

/** The policy lets nothing run but the page's own script, and lets it ask no server. */
function head({ script, style }: { script: string; style: string }): string {
  const hash = (text: string) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`;
  const policy = [
    "default-src 'none'",
    `script-src ${hash(script)}`,
    `style-src ${hash(style)}`,
    ...['img-src data:', 'worker-src blob:', "base-uri 'none'", "form-action 'none'"],
  ];
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="content-security-policy" content="${policy.join('; ')}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<title>actorlet: a recording</title>
<link rel="icon" href="data:,">
<style>${style}</style></head>
<body><div id="root"></div><noscript>This page needs JavaScript.</noscript>
`;
}

/** What `npm run build` made of the page. */
async function builtPage(files: ReadonlyMap<string, PageFile>): Promise<{ script: string; style: string; layout: string }> {
  const read = async (path: string | undefined): Promise<string> => {
    const file = path === undefined ? undefined : files.get(path)?.file;
    if (file === undefined) throw new CtlError(EXIT.failed, 'the page was not built: npm run build');
    return await readFile(file, 'utf8');
  };
  const index = await read('/');
  const named = (text: string, ext: string) => `/assets/${new RegExp(`assets/([\\w.-]+\\.${ext})"`).exec(text)?.[1]}`;
  const script = await read(named(index, 'js'));
  const layout = await read(`/assets/${/elk-worker[\w.-]+\.js/.exec(script)?.[0]}`);
  const style = await read(named(index, 'css'));
  // In strings of a script these mean the same, and an HTML parser does not see them.
  const inline = script.replaceAll(/<\/(?=script)/gi, '<\\/').replaceAll('<!--', '<\\!--');
  return { script: inline, style, layout };
}
