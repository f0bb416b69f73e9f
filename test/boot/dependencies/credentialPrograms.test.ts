/** The real programs behind credential providers: what keeps the node from starting, what they are given, how they are ended. */
import { chmodSync, existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { createClock } from '../../../src/boot/dependencies/clock.ts';
import { loadCredentialPrograms } from '../../../src/boot/dependencies/credentialPrograms.ts';
import { providerRequest } from '../../../src/machines/runtime/imagePuller/credentialProviders.ts';
import { eachFolder } from '../../eachFolder.ts';

let dir: string;
eachFolder((made) => {
  dir = made;
  mkdirSync(join(dir, 'bin'));
});

const HEAD = 'apiVersion: kubelet.config.k8s.io/v1\nkind: CredentialProviderConfig\n';
const entry = (name: string, more = '') =>
  `- name: ${name}\n  matchImages: ["r.example"]\n  defaultCacheDuration: 1m\n  apiVersion: credentialprovider.kubelet.k8s.io/v1\n${more}`;
function program(name: string, script: string, mode = 0o755): void {
  writeFileSync(join(dir, 'bin', name), `#!/bin/sh\n${script}\n`);
  chmodSync(join(dir, 'bin', name), mode);
}
async function load(config: string, env: Record<string, string> = { PATH: process.env.PATH ?? '' }) {
  writeFileSync(join(dir, 'providers.yaml'), config);
  const flags = { imageCredentialProviderConfig: join(dir, 'providers.yaml'), imageCredentialProviderBinDir: join(dir, 'bin') };
  const loaded = await loadCredentialPrograms(flags, { clock: createClock(), env, tokens: true });
  if (loaded === undefined) throw new Error('nothing was loaded');
  return loaded;
}
const call = (timeoutMs = 60_000) => ({ timeoutMs, signal: new AbortController().signal });

describe('the configuration of credential providers', () => {
  it('is nothing where none are asked for', async () => {
    const flags = { imageCredentialProviderConfig: '', imageCredentialProviderBinDir: '' };
    expect(await loadCredentialPrograms(flags, { clock: createClock(), env: {}, tokens: true })).toBeUndefined();
  });
  it('refuses the start with everything that is wrong, never with a value of the environment', async () => {
    program('plain', 'exit 0', 0o644);
    mkdirSync(join(dir, 'bin', 'folder'));
    const three = `${HEAD}providers:\n${entry('missing')}${entry('plain')}${entry('folder')}`;
    await expect(load(three)).rejects.toThrow(
      /"missing" cannot be run: ENOENT[\s\S]*"plain" cannot be run: EACCES[\s\S]*"folder" is no file/,
    );
    await expect(load(`${HEAD}providers: []\n`)).rejects.toThrow('providers.yaml: providers: at least one is required');
    const broken = load(`${HEAD}providers:\n${entry('a', '  env: [{name: A, value: "secret-word]\n')}`);
    await expect(broken).rejects.toThrow(/providers\.yaml: is not YAML: .* in line \d+/);
    await expect(broken).rejects.not.toThrow(/secret-word/);
    await expect(load(`${HEAD}x: &a [1]\nproviders: *a\n`)).rejects.toThrow('must have no aliases');
    rmSync(join(dir, 'providers.yaml'));
    const flags = { imageCredentialProviderConfig: join(dir, 'gone.yaml'), imageCredentialProviderBinDir: join(dir, 'bin') };
    await expect(loadCredentialPrograms(flags, { clock: createClock(), env: {}, tokens: true })).rejects.toThrow(
      /gone\.yaml: cannot be read: ENOENT/,
    );
  });
});

describe('a credential program', () => {
  it('that asked for it is given a token of the pod, on its standard input and nowhere else', async () => {
    program('tell', 'read -r line; printf "%s" "$line"; case "$(tr "\\0" " " < /proc/self/environ) $*" in *own-token*) exit 3;; esac');
    const more = '  tokenAttributes: {serviceAccountTokenAudience: r.example, cacheType: Token, requireServiceAccount: true}\n';
    const { providers, run } = await load(`${HEAD}providers:\n${entry('tell', more)}`);
    const [provider] = providers;
    if (provider === undefined) throw new Error('there is no provider');
    const account = { uid: 'u', namespace: 'default', name: 'builder', annotations: { team: 'blue' }, token: 'own-token' };
    const told: unknown = JSON.parse(await run(provider, providerRequest(provider, 'r.example/a:1', account), call()));
    expect(told).toEqual({
      ...{ kind: 'CredentialProviderRequest', apiVersion: 'credentialprovider.kubelet.k8s.io/v1', image: 'r.example/a:1' },
      ...{ serviceAccountToken: 'own-token', serviceAccountAnnotations: { team: 'blue' } },
    });
  });
  it('is given its arguments, its variables over those of the daemon, and the request', async () => {
    program('echo', 'read -r line; printf "%s|%s|%s|%s" "$1" "$A" "$B" "$line"');
    const more = '  args: ["get"]\n  env: [{name: A, value: own}]\n';
    const { providers, run } = await load(`${HEAD}providers:\n${entry('echo', more)}`, {
      PATH: process.env.PATH ?? '',
      A: 'daemon',
      B: 'kept',
    });
    const [echo] = providers;
    if (echo === undefined) throw new Error('no provider');
    expect(await run(echo, '{"image":"i"}\n', call())).toBe('get|own|kept|{"image":"i"}');
  });
  it('that fails says how it ended; what it printed is not quoted, and what looks like a secret in its errors neither', async () => {
    program('bad', 'echo printed-word; echo "no access for abcdefghijklmnopqrstuvwxyz0123456789" >&2; exit 3');
    const { providers, run } = await load(`${HEAD}providers:\n${entry('bad')}`);
    const [bad] = providers;
    if (bad === undefined) throw new Error('no provider');
    await expect(run(bad, '', call())).rejects.toThrow('ended with exit code 3: no access for ***');
    await expect(run(bad, '', call())).rejects.not.toThrow(/printed-word|abcdefghij/);
  });
  it('that takes too long, or that nobody waits for any more, is killed with what it started', async () => {
    program('slow', `(sleep 600 & echo $! > "${join(dir, 'child')}.part"; mv "${join(dir, 'child')}.part" "${join(dir, 'child')}"; wait)`);
    const { providers, run } = await load(`${HEAD}providers:\n${entry('slow')}`);
    const [slow] = providers;
    if (slow === undefined) throw new Error('no provider');
    await expect(run(slow, '', call(1_000))).rejects.toThrow('gave no answer within 1 s and was killed');
    const stop = new AbortController();
    rmSync(join(dir, 'child'), { force: true });
    const waiting = run(slow, '', { timeoutMs: 600_000, signal: stop.signal });
    const killed = expect(waiting).rejects.toThrow('nobody waits for it any more');
    await expect.poll(() => existsSync(join(dir, 'child'))).toBe(true);
    stop.abort();
    await killed;
  });
});
