/**
 * Starts each unit of `cases.ts` under a real systemd, and keeps what its program was started with. Some seconds, as root, after
 * `npm run e2e:setup`:
 *   scripts/node packages/check/test/unit/record.ts [FILE] && npm run format
 */
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { CASES, type Started, type UnitCase } from './cases.ts';

const KIT = join(import.meta.dirname, '../../../../test/e2e/vm');
const SETUP = String.raw`
set -u
cat >/usr/bin/kubelet <<'END'
#!/bin/bash
for w in "$@"; do printf '%s\0' "$w"; done >/run/argv.new
mv /run/argv.new /run/argv
END
chmod 755 /usr/bin/kubelet
`;
const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;
const base64 = (text: string): string => Buffer.from(text).toString('base64');

function script({ files }: UnitCase): string {
  const made = Object.entries(files).flatMap(([path, text]) => [
    `mkdir -p ${quoted(path.slice(0, path.lastIndexOf('/')))}`,
    text === null ? `ln -s /dev/null ${quoted(path)}` : `echo ${base64(text)} | base64 -d >${quoted(path)}`,
  ]);
  return `
rm -f /run/argv
${made.join('\n')}
systemctl daemon-reload
timeout 20 systemctl start --wait kubelet.service >/dev/null 2>&1
if [ -e /run/argv ]; then echo "argv $(base64 -w0 /run/argv)"; else echo none; fi
systemctl stop kubelet.service >/dev/null 2>&1; systemctl reset-failed >/dev/null 2>&1
rm -f ${Object.keys(files).map(quoted).join(' ')}
`;
}

/** In the order of the cases. */
export function started(name: string): Started[] {
  const env = { ...process.env, VM_NAME: name };
  try {
    const input = `${SETUP}${CASES.map(script).join('\n')}`;
    const out = execFileSync(join(KIT, 'vm-run.sh'), ['-i', 'bash'], { env, input, encoding: 'utf8', maxBuffer: 16 * 1024 * 1024 });
    const lines = out.split('\n').filter((line) => line === 'none' || line.startsWith('argv'));
    if (lines.length !== CASES.length) throw new Error(`${lines.length} answers to ${CASES.length} units`);
    return lines.map((line) => ({
      argv: line === 'none' ? null : wordsOf(Buffer.from(line.slice('argv '.length), 'base64').toString('utf8')),
    }));
  } finally {
    execFileSync(join(KIT, 'vm-stop.sh'), ['-k'], { env, stdio: 'ignore' });
  }
}
function wordsOf(bytes: string): string[] {
  return bytes.split('\0').slice(0, -1);
}

const [, , file] = process.argv;
if (import.meta.filename === process.argv[1]) {
  const answers = started('unit-cases');
  const kept = Object.fromEntries(CASES.map(({ name }, i) => [name, answers[i]?.argv ?? null]));
  writeFileSync(file ?? join(import.meta.dirname, 'recorded.json'), `${JSON.stringify(kept, null, 2)}\n`);
}
