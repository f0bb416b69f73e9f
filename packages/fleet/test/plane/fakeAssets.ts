/** Programs that answer as etcd and kube-apiserver do to whoever starts them, in a folder as KUBEBUILDER_ASSETS names it. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PROGRAMS, type ProgramName } from '../../src/plane/messages.ts';

/** Says its version at once, and waits as one that serves nobody: a start of Node costs more. */
const shell = (name: ProgramName, version: string): string => `#!/bin/sh
if [ "$1" = --version ]; then echo '${name === 'etcd' ? `etcd Version: ${version}` : `Kubernetes v${version}`}'; exit 0; fi
if [ -f "$0.fails" ]; then cat "$0.fails" >&2; exit 1; fi
case " $* " in *' --secure-port=0 '*) exec sh -c 'read -r _ <"$0"' "$0.wait" "$@" ;; esac
exec '${process.execPath}' "$0.cjs" "$@"
`;
/** Serves TLS with the key pair of its flags, and says 200 to everything. */
const SOURCE = `const { readFileSync } = require('node:fs');
const flag = (of) => process.argv.find((a) => a.startsWith('--' + of + '='))?.slice(of.length + 3);
const urls = flag('listen-client-urls');
const port = urls === undefined ? flag('secure-port') : new URL(urls).port;
const [cert, key] = urls === undefined ? [flag('tls-cert-file'), flag('tls-private-key-file')] : [flag('cert-file'), flag('key-file')];
require('node:https')
  .createServer({ cert: readFileSync(cert), key: readFileSync(key) }, (_, res) => res.end('{}'))
  .listen(Number(port), '127.0.0.1');
`;

export interface FakeAssets extends Disposable {
  dir: string;
  /** From now on a start of it ends with these words, and exit code 1; null: it starts. */
  fails(name: ProgramName, words: string | null): void;
}

export function fakeAssets(o: { names?: readonly ProgramName[]; kubernetes?: string; etcd?: string } = {}): FakeAssets {
  const { names = PROGRAMS, kubernetes = '1.36.2', etcd = '3.5.30' } = o;
  const dir = mkdtempSync(join(tmpdir(), 'actorlet-assets-'));
  for (const name of names) {
    writeFileSync(join(dir, name), shell(name, name === 'etcd' ? etcd : kubernetes), { mode: 0o755 });
    writeFileSync(join(dir, `${name}.cjs`), SOURCE);
    execFileSync('mkfifo', [join(dir, `${name}.wait`)]);
  }
  return {
    dir,
    fails(name, words) {
      const file = join(dir, `${name}.fails`);
      if (words === null) rmSync(file, { force: true });
      else writeFileSync(file, words);
    },
    [Symbol.dispose]: () => rmSync(dir, { recursive: true, force: true }),
  };
}
