/** scripts/setup/control-plane-setup.sh with a package manager and a compiler that the test plays: what it fetches again, cleans up and says. */
import { spawnSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';

const SCRIPT = join(import.meta.dirname, '../../scripts/setup/control-plane-setup.sh');
const PROGRAMS = ['kube-apiserver', 'kube-controller-manager', 'kube-scheduler', 'kubectl'];

/** `apt`: a script that is apt-get, given its arguments without the options; `$calls` has what it was asked before. */
function play(apt: string, o: { make?: string; args?: readonly string[]; before?: (cache: string) => void } = {}) {
  const dir = mkdtempSync(join(tmpdir(), 'actorlet-setup-'));
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
  const [bin, cache, calls] = ['bin', 'cache', 'calls'].map((name) => join(dir, name)) as [string, string, string];
  mkdirSync(bin);
  mkdirSync(cache);
  writeFileSync(calls, '');
  const tool = (name: string, text: string) => {
    writeFileSync(join(bin, name), `#!/bin/sh\n${text}\n`);
    chmodSync(join(bin, name), 0o755);
  };
  for (const name of ['etcd', 'go', 'jq', 'rsync', 'dpkg-source']) tool(name, 'exit 0');
  const skipOptions = 'while [ $# -gt 0 ]; do case $1 in -o) shift 2 ;; -*) shift ;; *) break ;; esac; done';
  tool('apt-get', `calls=${calls}\n${skipOptions}\necho "$1" >>"$calls"\nasked() { grep -c "^$1\\$" "$calls"; }\n${apt}`);
  // The trees that the build works in are made of nothing but what the script looks for.
  const build = [
    'for target in $(echo "$1" | sed s/WHAT=//); do name=$(basename "$target"); mkdir -p _output/bin',
    'printf "#!/bin/sh\\necho Kubernetes v0\\n" >"_output/bin/$name"; chmod 755 "_output/bin/$name"; done',
  ].join('\n');
  tool('make', o.make ?? build);
  o.before?.(cache);
  const env = { PATH: `${bin}:${process.env.PATH}`, HOME: dir, ACTORLET_CONTROL_PLANE_CACHE: cache, ACTORLET_FETCH_PAUSE_S: '0' };
  const ran = spawnSync('sh', [SCRIPT, ...(o.args ?? [])], { env, encoding: 'utf8', timeout: 50_000 });
  const asked = readFileSync(calls, 'utf8').split('\n').filter(Boolean);
  return { ...ran, cache, asked, left: readdirSync(cache).filter((name) => /^(build|setup)\./.test(name) && name !== 'build.log') };
}
const SOURCE = 'mkdir -p kubernetes-1/cmd/kube-apiserver && echo x >kubernetes-1/cmd/kube-apiserver/apiserver.go';

// It is for Debian and its derivatives: the package sources of another one say nothing to it.
describe.runIf(existsSync('/etc/debian_version'))('the set-up of the control plane', () => {
  it('fetches, builds and keeps the programs, the kubelet too where it is asked for, and nothing else', () => {
    const ran = play(`case $1 in source) ${SOURCE} ;; esac`, { args: ['--with-kubelet'] });
    expect([ran.status, ran.stderr]).toEqual([0, '']);
    expect(ran.stdout).toContain('ready: Kubernetes v0');
    expect(readdirSync(join(ran.cache, 'bin')).sort()).toEqual([...PROGRAMS, 'kubelet'].sort());
    expect(ran.asked).toEqual(['update', 'source']);
    expect(ran.left).toEqual([]);
  });

  it('tries again what could not be fetched, from a clean folder', () => {
    const torn = `[ "$(asked source)" -ge 3 ] || { mkdir half; echo "connection reset" >&2; exit 100; }`;
    const ran = play(`case $1 in update) [ "$(asked update)" -ge 2 ] || exit 100 ;; source) ${torn}; ${SOURCE} ;; esac`);
    expect([ran.status, ran.stderr]).toEqual([0, '']);
    expect(ran.asked).toEqual(['update', 'update', 'source', 'source', 'source']);
    expect(ran.stdout).toContain('could not be fetched; tried again in 0 s (1 of 3)');
  });

  it('gives up after the third time, with the words of who failed, and leaves nothing', () => {
    const ran = play('case $1 in source) echo "E: no such host: mirror.invalid" >&2; exit 100 ;; esac');
    expect(ran.status).toBe(1);
    expect(ran.asked).toEqual(['update', 'source', 'source', 'source']);
    expect(ran.stderr).toMatch(
      /no such host: mirror\.invalid[\s\S]*the source package kubernetes could not be fetched or unpacked, 3 times, see above/,
    );
    expect(ran.left).toEqual([]);
  });

  it('says of a build that failed where its log is', () => {
    const ran = play(`case $1 in source) ${SOURCE} ;; esac`, { make: 'echo "out of memory" >&2; exit 2' });
    expect(ran.status).toBe(1);
    expect(ran.stderr).toMatch(/out of memory[\s\S]*the build of kube-apiserver .* failed, see above and .*build\.log/);
    expect(ran.left).toEqual([]);
  });

  it('removes what a run that was killed left behind', () => {
    const ran = play(`case $1 in source) ${SOURCE} ;; esac`, {
      before: (cache) => {
        mkdirSync(join(cache, 'build.abc123'));
        writeFileSync(join(cache, 'build.abc123/x'), 'x');
      },
    });
    expect(ran.status).toBe(0);
    expect(ran.left).toEqual([]);
  });

  it('fetches and builds nothing that is there', () => {
    const ran = play('exit 100', {
      before: (cache) => {
        mkdirSync(join(cache, 'bin'));
        for (const name of PROGRAMS) writeFileSync(join(cache, 'bin', name), '#!/bin/sh\necho there\n', { mode: 0o755 });
      },
    });
    expect([ran.status, ran.asked]).toEqual([0, []]);
    expect(ran.stdout).toContain('ready: there');
  });
});
