/** An empty Debian in a folder: both packages are installed there, and help, man pages, completion and documents are found. */
import { execFile } from 'node:child_process';
import { copyFileSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from 'vitest';

const run = promisify(execFile);
const project = join(import.meta.dirname, '../../..');
const home = mkdtempSync(join(tmpdir(), 'actorlet-empty-'));
const root = join(home, 'root');
const TIMEOUT_MS = 300_000;
/** A shell's surroundings there; nothing of this machine's. */
const ENV = 'export PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8';

/** What a script prints in the empty machine, which has its own mounts while it runs. */
async function inside(script: string): Promise<string> {
  writeFileSync(join(root, 'tmp/script'), `${ENV}\n${script}\n`);
  const mounts = `mount --bind ${root} ${root} && mount -t proc proc ${root}/proc && mount --rbind /dev ${root}/dev`;
  const { stdout } = await run('unshare', ['-m', 'sh', '-c', `${mounts} && exec chroot ${root} sh /tmp/script 2>&1`], {
    timeout: TIMEOUT_MS,
  });
  return stdout;
}

beforeAll(async () => {
  const suite = /^VERSION_CODENAME=(.*)$/m.exec(readFileSync('/etc/os-release', 'utf8'))?.[1] ?? 'bookworm';
  const packages = 'man-db,bash-completion,zsh,fish,ca-certificates';
  await run('mmdebstrap', ['--variant=minbase', `--include=${packages}`, suite, root], { timeout: TIMEOUT_MS });
}, TIMEOUT_MS);
afterAll(() => rmSync(home, { recursive: true, force: true }));

it(
  'has all of it from the Debian packages',
  async () => {
    await run('sh', [join(project, 'scripts/deb.sh'), home], { cwd: project, timeout: TIMEOUT_MS });
    for (const deb of readdirSync(home).filter((name) => name.endsWith('.deb'))) copyFileSync(join(home, deb), join(root, 'tmp', deb));
    await inside('apt-get install -y --no-install-recommends /tmp/*.deb');
    expect(await inside('actorctl --help')).toContain('actorctl why <pod>');
    expect(await inside('actorlet --help')).toContain('--actorlet-record');
    expect(await inside('man actorctl | cat')).toContain('actorctl node drain');
    expect(await inside('man -k actorlet')).toMatch(/^actorctl \(1\)[\s\S]*^actorlet \(8\)/m);
    const complete = [
      '. /usr/share/bash-completion/bash_completion',
      '_completion_loader actorctl',
      'COMP_WORDS=(actorctl tr) COMP_CWORD=1',
      '_actorctl',
    ];
    expect(await inside(`bash -c '${complete.join('; ')}; echo "\${COMPREPLY[@]}"'`)).toBe('tree try\n');
    expect(await inside(`zsh -fc 'autoload -U compinit; compinit -u -D; print $_comps[actorctl] $_comps[actorlet]'`)).toBe(
      '_actorctl _actorlet\n',
    );
    expect(await inside(`fish -c 'complete -C "actorctl tr"; complete -C "actorlet --container-runtime-e"'`)).toMatch(
      /^tree\ntry\n--container-runtime-endpoint\t/,
    );
    const documents = join(root, 'usr/share/doc/actorlet');
    // Pictures, decisions and the specification are for those who have the sources.
    for (const [, link = ''] of readFileSync(join(documents, 'README.md'), 'utf8').matchAll(/\]\((?!\w+:)([^)#]+)[^)]*\)/g))
      expect([link, /\.png$|^bench\/|^docs\/spec\/|^LICENSE$/.test(link) || existsSync(join(documents, link))]).toEqual([link, true]);
    const named = /\/usr\/share\/doc\/\S+\.yaml/.exec(readFileSync(join(documents, 'docs/system-service.md'), 'utf8'))?.[0] ?? '';
    expect(existsSync(join(root, named))).toBe(true);
  },
  TIMEOUT_MS,
);

it(
  'has help, man pages and documents from the npm package',
  async () => {
    await run('npm', ['pack', '--pack-destination', home], { cwd: project, timeout: TIMEOUT_MS });
    const tarball = readdirSync(home).find((name) => name.endsWith('.tgz')) ?? '';
    await run('npm', ['install', '--global', '--prefix', join(root, 'usr/local'), join(home, tarball)], { cwd: home, timeout: TIMEOUT_MS });
    const node = 'export ACTORLET_NODE=$(echo /usr/lib/actorlet/node_modules/node-linux-*/bin/node)';
    expect(await inside(`${node}; /usr/local/bin/actorctl --help`)).toContain('actorctl why <pod>');
    expect(await inside('man -w -M /usr/local/share/man actorctl actorlet')).toMatch(/actorctl\.1\n.*actorlet\.8\n/);
    expect(await inside(`${node}; bash -c 'source <(/usr/local/bin/actorctl completion bash); complete -p actorctl'`)).toContain(
      '_actorctl',
    );
    expect(existsSync(join(root, 'usr/local/lib/node_modules/actorlet/docs/getting-started.md'))).toBe(true);
  },
  TIMEOUT_MS,
);
