/** Credential provider programs: their configuration, whom they are asked about, what their answers mean and how long they hold. */
import { describe, expect, it } from 'vitest';
import { ProviderKeyring } from '../../../src/actors/runtime/imagePuller/providers.ts';
import {
  authsFor,
  type CredentialProvider,
  isAsked,
  providerRequest,
  readAnswer,
  readProviders,
} from '../../../src/machines/runtime/imagePuller/credentialProviders.ts';
import { parseGoDuration } from '../../../src/machines/text/go/goDuration.ts';
import { NO_PEERS } from '../../peers.ts';
import { collectingLogger, fakePorts } from '../../supervision/fakePorts.ts';

const CONFIG = { apiVersion: 'kubelet.config.k8s.io/v1', kind: 'CredentialProviderConfig' };
const SPOKEN = 'credentialprovider.kubelet.k8s.io/v1';
const GOOD = { name: 'ecr', matchImages: ['*.dkr.ecr.*.amazonaws.com'], defaultCacheDuration: '12h', apiVersion: SPOKEN };
const provider = (more: Partial<CredentialProvider> = {}): CredentialProvider => ({
  name: 'p',
  matchImages: ['r.example'],
  defaultCacheMs: 60_000,
  apiVersion: SPOKEN,
  args: [],
  env: [],
  ...more,
});
const answer = (more: object = {}) =>
  JSON.stringify({
    kind: 'CredentialProviderResponse',
    apiVersion: SPOKEN,
    cacheKeyType: 'Registry',
    auth: { 'r.example': { username: 'u', password: 'secret-word' } },
    ...more,
  });

describe('the configuration', () => {
  const read = (...providers: unknown[]) => readProviders({ ...CONFIG, providers }, { parseDuration: parseGoDuration, tokens: true });
  it('is read with everything that it may say', () => {
    const { providers, problems } = read({ ...GOOD, args: ['get'], env: [{ name: 'AWS_PROFILE', value: 'node' }] });
    expect(problems).toEqual([]);
    expect(providers).toEqual([
      {
        name: 'ecr',
        matchImages: GOOD.matchImages,
        defaultCacheMs: 43_200_000,
        apiVersion: SPOKEN,
        args: ['get'],
        env: [{ name: 'AWS_PROFILE', value: 'node' }],
      },
    ]);
  });
  it.each([
    ['no providers', [], ['providers: at least one is required']],
    ['no name', [{ ...GOOD, name: '' }], ['providers[0].name: required']],
    ['a path for a name', [{ ...GOOD, name: '../ecr' }], ['providers[0].name: must be the name of a file, without slashes and blanks']],
    ['a folder for a name', [{ ...GOOD, name: '..' }], ['providers[0].name: must be the name of a file, without slashes and blanks']],
    ['two of a name', [GOOD, GOOD], ['providers[1].name: "ecr" is there already']],
    ['no images', [{ ...GOOD, matchImages: [] }], ['providers[0].matchImages: at least one is required']],
    [
      'a scheme',
      [{ ...GOOD, matchImages: ['https://r.example'] }],
      ['providers[0].matchImages[0]: "https://r.example" is not host[:port][/path] without a scheme'],
    ],
    ['no duration', [{ ...GOOD, defaultCacheDuration: undefined }], ['providers[0].defaultCacheDuration: required']],
    [
      'a duration that is none',
      [{ ...GOOD, defaultCacheDuration: '12' }],
      ['providers[0].defaultCacheDuration: must be a duration such as 10m, not negative'],
    ],
    [
      'a negative duration',
      [{ ...GOOD, defaultCacheDuration: '-1s' }],
      ['providers[0].defaultCacheDuration: must be a duration such as 10m, not negative'],
    ],
    [
      'another version',
      [{ ...GOOD, apiVersion: 'v9' }],
      [
        'providers[0].apiVersion: must be one of credentialprovider.kubelet.k8s.io/v1, credentialprovider.kubelet.k8s.io/v1beta1, credentialprovider.kubelet.k8s.io/v1alpha1',
      ],
    ],
    ['an unknown field', [{ ...GOOD, matchImage: 'x' }], ['providers[0].matchImage: unknown field']],
    ['a variable without a value', [{ ...GOOD, env: [{ name: 'A' }] }], ['providers[0].env[0]: must have a name, without =, and a value']],
  ])('%s', (_, providers, problems) => {
    const found = read(...providers);
    expect(found.problems.map(({ path, what }) => `${path}: ${what}`)).toEqual(problems);
    expect(found.providers).toEqual([]);
  });
  it.each([null, 'text', { kind: 'Pod' }])('refuses what is none: %j', (value) => {
    expect(readProviders(value, { parseDuration: parseGoDuration, tokens: true }).problems.length).toBeGreaterThan(0);
  });
});

describe('who is asked about an image', () => {
  it.each([
    ['r.example', 'r.example/team/app:1', true],
    ['r.example', 'other.example/team/app:1', false],
    ['*.example', 'r.example/app', true],
    ['*.example', 'a.r.example/app', false],
    ['*.dkr.ecr.*.amazonaws.com', `123.dkr.ecr.eu-west-1.amazonaws.com/app@sha256:${'a'.repeat(64)}`, true],
    ['r.example:5000', 'r.example/app', false],
    ['r.example:5000', 'r.example:5000/app', true],
    ['r.example', 'r.example:5000/app', false],
    ['r.example/team', 'r.example/team/app', true],
    ['r.example/team', 'r.example/other/app', false],
    ['docker.io', 'busybox', true],
    ['r?.example', 'r1.example/app', true],
    ['r.example', 'Not//Good', false],
  ])('%s, %s: %s', (match, image, asked) => {
    expect(isAsked(provider({ matchImages: [match] }), image)).toBe(asked);
  });
  it('is told the image in the version of the configuration', () => {
    expect(JSON.parse(providerRequest(provider(), 'r.example/a:1'))).toEqual({
      kind: 'CredentialProviderRequest',
      apiVersion: SPOKEN,
      image: 'r.example/a:1',
    });
  });
});

describe('an answer', () => {
  const read = (text: string) => readAnswer(provider(), text, parseGoDuration);
  it('gives what matches the image, the more exact first', () => {
    const auth = {
      '*.example': { username: 'wide', password: '1' },
      'r.example/team': { username: 'narrow', password: '2' },
      'other.example': { username: 'other', password: '3' },
    };
    expect(authsFor(read(answer({ auth })), 'r.example/team/app').map((a) => a.auth.username)).toEqual(['narrow', 'wide']);
  });
  it('holds for a registry that is written with its scheme', () => {
    const auth = {
      'https://index.docker.io/v1/': { username: 'hub', password: '1' },
      'https://r.example': { username: 'r', password: '2' },
    };
    const users = (image: string) => authsFor(read(answer({ auth })), image).map((a) => a.auth.username);
    expect([users('busybox'), users('r.example/a')]).toEqual([['hub'], ['r']]);
  });
  it.each([
    ['no JSON', 'secret-word'],
    ['another kind', answer({ kind: 'Secret' })],
    ['another version', answer({ apiVersion: 'credentialprovider.kubelet.k8s.io/v1beta1' })],
    ['no key type', answer({ cacheKeyType: 'Pod' })],
    ['a duration that is none', answer({ cacheDuration: 'secret-word' })],
    ['an auth that is no mapping', answer({ auth: ['secret-word'] })],
    ['an auth without a password', answer({ auth: { 'r.example': { username: 'secret-word' } } })],
  ])('that cannot be used is refused without being quoted: %s', (_, text) => {
    expect(() => read(text)).toThrow(/^printed/);
    expect(() => read(text)).not.toThrow(/secret-word/);
  });
});

describe('what programs know', () => {
  function keyring(providers: CredentialProvider[], run: (p: CredentialProvider, image: string) => Promise<string>) {
    const ports = fakePorts();
    const asked: string[] = [];
    const lines: Parameters<typeof collectingLogger>[0] = [];
    const made = new ProviderKeyring({
      calls: NO_PEERS.calls,
      ports,
      log: collectingLogger(lines),
      programs: {
        providers,
        run: (p, input) => {
          const { image } = JSON.parse(input) as { image: string };
          asked.push(`${p.name} ${image}`);
          return run(p, image);
        },
      },
      signal: new AbortController().signal,
      accounts: null,
    });
    return {
      ports,
      asked,
      lines,
      of: async (image: string) =>
        (await made.credentials(image, { pod: { uid: 'u', name: 'web', namespace: 'default' }, serviceAccount: '' })).map(
          (a) => a.auth.username,
        ),
    };
  }

  it.each([
    ['Image', ['r.example/a:1', 'r.example/a:2', 'r.example/b:1', 'q.example/a:1'], 3],
    ['Registry', ['r.example/a:1', 'r.example/a:2', 'r.example/b:1', 'q.example/a:1'], 2],
    ['Global', ['r.example/a:1', 'r.example/a:2', 'r.example/b:1', 'q.example/a:1'], 1],
  ])('is kept by %s', async (cacheKeyType, images, runs) => {
    const auth = { '*.example': { username: 'u', password: 'p' } };
    const k = keyring([provider({ matchImages: ['*.example'] })], async () => answer({ cacheKeyType, auth }));
    for (const image of [...images, ...images]) expect(await k.of(image)).toEqual(['u']);
    expect(k.asked).toHaveLength(runs);
  });

  it('is asked for by the repository, whole and without its tag', async () => {
    const auth = { 'docker.io': { username: 'u', password: 'p' } };
    const k = keyring([provider({ matchImages: ['docker.io'] })], async () => answer({ auth }));
    expect(await k.of('busybox:1.36')).toEqual(['u']);
    expect(k.asked).toEqual(['p docker.io/library/busybox']);
  });

  it('holds as long as the answer says, else as long as the configuration says; 0: for once', async () => {
    const durations: Record<string, string | undefined> = { own: '10s', default: undefined, once: '0s' };
    const providers = Object.keys(durations).map((name) => provider({ name, matchImages: [`${name}.example`] }));
    const k = keyring(providers, async ({ name }) =>
      answer({ cacheDuration: durations[name], auth: { [`${name}.example`]: { username: name, password: 'p' } } }),
    );
    const count = (name: string) => k.asked.filter((a) => a.startsWith(name)).length;
    const askAll = async () => {
      for (const { name } of providers) expect(await k.of(`${name}.example/a`)).toEqual([name]);
    };
    await askAll();
    await askAll();
    expect(['own', 'default', 'once'].map(count)).toEqual([1, 1, 2]);
    await k.ports.advance(10_000);
    await askAll();
    expect(['own', 'default', 'once'].map(count)).toEqual([2, 1, 3]);
    await k.ports.advance(50_000);
    await askAll();
    expect(['own', 'default', 'once'].map(count)).toEqual([3, 2, 4]);
  });

  it('is asked once for pulls that come together, and of every program in the order of the configuration', async () => {
    const go = Promise.withResolvers<void>();
    const k = keyring([provider({ name: 'b' }), provider({ name: 'a' })], async ({ name }) => {
      await go.promise;
      return answer({ auth: { 'r.example': { username: name, password: 'p' } } });
    });
    const both = Promise.all([k.of('r.example/a'), k.of('r.example/a')]);
    go.resolve();
    expect(await both).toEqual([
      ['b', 'a'],
      ['b', 'a'],
    ]);
    expect(k.asked).toEqual(['b r.example/a', 'a r.example/a']);
  });

  it('is less when one fails, which is said without its words, and asked again', async () => {
    let fails = true;
    const k = keyring([provider({ name: 'bad' }), provider({ name: 'good' })], async ({ name }) => {
      if (name === 'bad' && fails) return 'secret-word';
      return answer({ auth: { 'r.example': { username: name, password: 'secret-word' } } });
    });
    expect(await k.of('r.example/a')).toEqual(['good']);
    expect(k.lines.map((l) => l.level)).toEqual(['warn']);
    expect(JSON.stringify(k.lines)).toContain('printed what is not JSON');
    expect(JSON.stringify(k.lines)).not.toContain('secret-word');
    const text = await k.ports.metrics.render();
    expect(text).toContain('kubelet_credential_provider_plugin_errors_total{plugin_name="bad"} 1');
    expect(text).not.toContain('errors{plugin_name="good"}');
    fails = false;
    expect(await k.of('r.example/a')).toEqual(['bad', 'good']);
  });
});
