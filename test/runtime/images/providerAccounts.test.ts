/** Credential providers that are told of a pod's service account: their configuration, what they are given, who shares their answers, and what those show for others. */
import { describe, expect, it } from 'vitest';
import { ProviderKeyring, type PullingPod } from '../../../src/actors/runtime/imagePuller/providers.ts';
import { type AccountSource, accountSource, serviceAccountOf } from '../../../src/actors/services/client.ts';
import { createEntropy } from '../../../src/boot/dependencies/clock.ts';
import type { TokenRequest } from '../../../src/machines/kube/objects.ts';
import type { KubeResult } from '../../../src/machines/kube/request.ts';
import { ANNOTATION_SOURCE } from '../../../src/machines/pod/names.ts';
import {
  type CredentialProvider,
  readProviders,
  type TokenAttributes,
} from '../../../src/machines/runtime/imagePuller/credentialProviders.ts';
import { accessOf, grantedBy } from '../../../src/machines/runtime/imagePuller/pullRecords.ts';
import { parseGoDuration } from '../../../src/machines/text/go/goDuration.ts';
import { views } from '../../edge/harness.ts';
import { pod } from '../../edge/metrics/samples.ts';
import { NO_PEERS } from '../../peers.ts';
import { collectingLogger, fakePorts, type LogLine } from '../../supervision/fakePorts.ts';

const SPOKEN = 'credentialprovider.kubelet.k8s.io/v1';
const ASKED = { serviceAccountTokenAudience: 'r.example', cacheType: 'ServiceAccount', requireServiceAccount: true };
const GOOD = { name: 'p', matchImages: ['r.example'], defaultCacheDuration: '1m', apiVersion: SPOKEN, tokenAttributes: ASKED };
const attributes = (more: Partial<TokenAttributes> = {}): TokenAttributes => ({
  ...{ audience: 'r.example', cacheType: 'ServiceAccount', requireServiceAccount: true, requiredAnnotations: [], optionalAnnotations: [] },
  ...more,
});

describe('the configuration', () => {
  const read = (provider: object, tokens = true) => {
    const config = { apiVersion: 'kubelet.config.k8s.io/v1', kind: 'CredentialProviderConfig', providers: [provider] };
    return readProviders(config, { parseDuration: parseGoDuration, tokens });
  };
  it('says for whom the token is, who shares answers, and which annotations go along', () => {
    const tokenAttributes = {
      ...ASKED,
      requiredServiceAccountAnnotationKeys: ['r.example/role'],
      optionalServiceAccountAnnotationKeys: ['team'],
    };
    expect(read({ ...GOOD, tokenAttributes }).providers[0]?.tokenAttributes).toEqual(
      attributes({ requiredAnnotations: ['r.example/role'], optionalAnnotations: ['team'] }),
    );
  });
  const wrong = (more: object): object => ({ ...GOOD, tokenAttributes: { ...ASKED, ...more } });
  it.each([
    ['no audience', wrong({ serviceAccountTokenAudience: '' }), '.serviceAccountTokenAudience: required'],
    ['no type of cache', wrong({ cacheType: undefined }), '.cacheType: must be ServiceAccount or Token'],
    ['another type of cache', wrong({ cacheType: 'Pod' }), '.cacheType: must be ServiceAccount or Token'],
    ['no word on pods without an account', wrong({ requireServiceAccount: undefined }), '.requireServiceAccount: required: true or false'],
    [
      'annotations that are needed of an account that is not',
      wrong({ requireServiceAccount: false, requiredServiceAccountAnnotationKeys: ['a'] }),
      '.requireServiceAccount: must be true where requiredServiceAccountAnnotationKeys are set',
    ],
    [
      'an annotation that is none',
      wrong({ optionalServiceAccountAnnotationKeys: ['not good'] }),
      '.optionalServiceAccountAnnotationKeys[0]: "not good" is not the name of an annotation',
    ],
    [
      'an annotation twice',
      wrong({ requiredServiceAccountAnnotationKeys: ['a', 'a'] }),
      '.requiredServiceAccountAnnotationKeys[1]: "a" is there already',
    ],
    [
      'an annotation that is needed and not',
      wrong({ requiredServiceAccountAnnotationKeys: ['a'], optionalServiceAccountAnnotationKeys: ['a'] }),
      ': annotations cannot be both required and optional: a',
    ],
    ['an unknown field', wrong({ audience: 'x' }), '.audience: unknown field'],
    ['an older version', { ...GOOD, apiVersion: `${SPOKEN}beta1` }, `: needs apiVersion ${SPOKEN}`],
  ])('with %s is refused', (_, provider, what) => {
    const { providers, problems } = read(provider);
    expect(problems.map((p) => `${p.path}: ${p.what}`)).toEqual([`providers[0].tokenAttributes${what}`]);
    expect(providers).toEqual([]);
  });
  it('is refused without the gate', () => {
    expect(read(GOOD, false).problems.map((p) => p.what)).toEqual(['needs feature gate KubeletServiceAccountTokenForCredentialProviders']);
  });
});

describe('a provider', () => {
  const of = (name: string, serviceAccount = 'builder'): PullingPod => ({
    pod: { uid: `uid-${name}`, name, namespace: 'default' },
    serviceAccount,
  });
  function keyring(
    t: Partial<TokenAttributes>,
    o: { annotations?: Record<string, string>; refuse?: 'account' | 'token'; alone?: boolean; keyType?: string; echo?: boolean } = {},
  ) {
    const provider: CredentialProvider = {
      ...{ name: 'p', matchImages: ['r.example'], defaultCacheMs: 60_000, apiVersion: SPOKEN, args: [], env: [] },
      tokenAttributes: attributes(t),
    };
    const given: Record<string, unknown>[] = [];
    const tokens: TokenRequest[] = [];
    const lines: LogLine[] = [];
    const accounts: AccountSource = {
      account: async () =>
        o.refuse === 'account'
          ? { kind: 'failed', message: 'forbidden' }
          : { kind: 'found', value: { uid: 'uid-of-account', annotations: o.annotations ?? {} } },
      token: async (request) => {
        tokens.push(request);
        return o.refuse === 'token'
          ? { kind: 'failed', message: 'no token' }
          : { kind: 'found', value: { token: `secret-of-${request.pod.uid}` } };
      },
    };
    const ports = fakePorts({ entropy: createEntropy() });
    const made = new ProviderKeyring({
      calls: NO_PEERS.calls,
      ports,
      log: collectingLogger(lines),
      programs: {
        providers: [provider],
        run: async (_, input) => {
          const asked = JSON.parse(input) as Record<string, unknown>;
          given.push(asked);
          return JSON.stringify({
            ...{ kind: 'CredentialProviderResponse', apiVersion: SPOKEN, cacheKeyType: o.keyType ?? 'Registry' },
            auth: { 'r.example': { username: 'u', password: o.echo === true ? asked.serviceAccountToken : 'p' } },
          });
        },
      },
      signal: new AbortController().signal,
      accounts: o.alone === true ? null : accounts,
    });
    return { given, tokens, lines, made, ask: (who: PullingPod) => made.credentials('r.example/a:1', who) };
  }

  it('is given a token that is bound to the pod, for the audience that it names, and the annotations that it asked for', async () => {
    const k = keyring(
      { requiredAnnotations: ['role'], optionalAnnotations: ['team', 'none'] },
      { annotations: { role: 'puller', team: 'blue', private: 'x' } },
    );
    const auths = await k.ask(of('web'));
    expect(k.given).toEqual([
      {
        kind: 'CredentialProviderRequest',
        apiVersion: SPOKEN,
        image: 'r.example/a',
        serviceAccountToken: 'secret-of-uid-web',
        serviceAccountAnnotations: { role: 'puller', team: 'blue' },
      },
    ]);
    expect(k.tokens).toEqual([
      {
        ...{ namespace: 'default', serviceAccount: 'builder', audiences: ['r.example'], expirationSeconds: 3_600 },
        pod: { name: 'web', uid: 'uid-web' },
      },
    ]);
    expect(auths).toEqual([
      {
        auth: { username: 'u', password: 'p' },
        owner: { kind: 'serviceAccount', uid: 'uid-of-account', namespace: 'default', name: 'builder' },
      },
    ]);
  });
  it.each([
    ['ServiceAccount', 1, 'serviceAccount'],
    ['Token', 2, 'token'],
  ] as const)('with cacheType %s is run so often for two pods of an account: %i', async (cacheType, runs, kind) => {
    for (const keyType of ['Image', 'Registry', 'Global']) {
      const k = keyring({ cacheType }, { keyType });
      for (const who of ['web', 'db', 'web', 'db']) expect((await k.ask(of(who)))[0]?.owner?.kind).toBe(kind);
      expect([keyType, k.given.length]).toEqual([keyType, runs]);
    }
  });
  it.each([
    ['ServiceAccount', [], ['warn']],
    ['Token', ['secret-of-uid-web'], []],
  ] as const)('with cacheType %s that gives the token back gives %j', async (cacheType, passwords, levels) => {
    const k = keyring({ cacheType }, { echo: true });
    expect((await k.ask(of('web'))).map((a) => a.auth.password)).toEqual(passwords);
    expect(k.lines.map((l) => l.level)).toEqual(levels);
    expect(JSON.stringify(k.lines)).not.toContain('secret-of');
  });
  it('is run anew for another account, and after its annotations have changed', async () => {
    const annotations = { team: 'blue' };
    const k = keyring({ optionalAnnotations: ['team'] }, { annotations });
    await k.ask(of('web'));
    await k.ask(of('web', 'other'));
    annotations.team = 'red';
    await k.ask(of('web'));
    expect(k.given.map((g) => g.serviceAccountAnnotations)).toEqual([{ team: 'blue' }, { team: 'blue' }, { team: 'red' }]);
  });
  it('is not asked where an annotation that it needs is missing: that is the workload’s choice, and no line in the log', async () => {
    const k = keyring({ requiredAnnotations: ['role'] });
    expect([await k.ask(of('web')), k.given, k.tokens, k.lines]).toEqual([[], [], [], []]);
  });
  it.each([
    ['with an account alone is not asked for pods without one', true, 0],
    ['without is run for those too, with no token', false, 1],
  ])('%s', async (_, requireServiceAccount, runs) => {
    for (const alone of [false, true]) {
      const k = keyring({ requireServiceAccount }, { alone });
      const auths = await k.ask(of('static', ''));
      expect([auths.length, k.given.length]).toEqual([runs, runs]);
      expect(JSON.stringify(k.given)).not.toMatch(/serviceAccount/);
      expect(auths.flatMap((a) => a.owner ?? [])).toEqual([]);
    }
  });
  it.each(['account', 'token'] as const)('is not asked where the %s cannot be had, which is said', async (refuse) => {
    const k = keyring({}, { refuse });
    expect([await k.ask(of('web')), k.given]).toEqual([[], []]);
    expect(k.lines.map((l) => l.level)).toEqual(['warn']);
    expect(k.lines[0]?.fields).toMatchObject({ provider: 'p', serviceAccount: 'builder', uid: 'uid-web' });
    expect(JSON.stringify(k.lines)).not.toContain('secret-of');
  });
  it('shows for an image that is there what it shows for one that is pulled; other providers show nothing', async () => {
    const k = keyring({});
    expect(await k.made.accountCredentials('r.example/a:1', of('web'))).toEqual(await k.ask(of('web')));
    expect(await k.made.accountCredentials('r.example/a:1', of('static', ''))).toEqual([]);
    expect(await k.made.accountCredentials('other.example/a:1', of('web'))).toEqual([]);
  });
});

describe('what credentials of an account open', () => {
  const hash = (): string => 'h';
  const owned = (kind: 'serviceAccount' | 'token', name = 'builder') => ({
    auth: { username: 'u', password: 'p' },
    owner: { kind, uid: 'u1', namespace: 'default', name },
  });
  it('is open to pods of that account, where the provider answers for accounts', () => {
    const granted = grantedBy(owned('serviceAccount'), hash);
    expect(accessOf(granted, [owned('serviceAccount')], hash).granted).toBe(true);
    expect(accessOf(granted, [owned('serviceAccount', 'other')], hash).granted).toBe(false);
  });
  it('is open to nobody else where it answers for tokens', () => {
    const granted = grantedBy(owned('token'), hash);
    expect(granted).toEqual({});
    expect(accessOf(granted, [owned('token'), owned('serviceAccount')], hash).granted).toBe(false);
    expect(accessOf(grantedBy(owned('serviceAccount'), hash), [owned('token')], hash).granted).toBe(false);
  });
});

describe('service accounts', () => {
  const source = (answer: KubeResult) => {
    const asked: string[] = [];
    const request = async (r: { verb: string; path: string }) => {
      asked.push(`${r.verb} ${r.path}`);
      return answer;
    };
    const kube = { request };
    const ports = { ...fakePorts(), kube: kube as never };
    const ctx = { ports, registry: views(), signal: new AbortController().signal };
    return { asked, of: accountSource(ctx) };
  };
  const signal = new AbortController().signal;
  it('are asked of the API server, and none are there on a standalone node', async () => {
    const body = { metadata: { name: 'builder', uid: 'u1', annotations: { role: 'puller' } } };
    const s = source({ ok: true, code: 200, body });
    expect(await s.of?.account({ namespace: 'default', name: 'builder' }, signal)).toEqual({
      kind: 'found',
      value: { uid: 'u1', annotations: { role: 'puller' } },
    });
    expect(s.asked).toEqual(['GET /api/v1/namespaces/default/serviceaccounts/builder']);
    const odd = source({ ok: true, code: 200, body: { metadata: { ...body.metadata, annotations: { odd: 1 } } } });
    expect(await odd.of?.account({ namespace: 'default', name: 'builder' }, signal)).toEqual({
      kind: 'failed',
      message: expect.stringContaining('metadata.annotations.odd: must be a string, not a number'),
    });
    const standalone = { ports: fakePorts(), registry: views(), signal };
    expect(accountSource(standalone)).toBeNull();
  });
  it('are those of pods of the API only', () => {
    const web = pod('web');
    const named = { ...web, spec: { ...web.spec, serviceAccountName: 'builder' } };
    const ofApi = { ...named, metadata: { ...named.metadata, annotations: { [ANNOTATION_SOURCE]: 'api' } } };
    expect([serviceAccountOf(ofApi), serviceAccountOf(named)]).toEqual(['builder', '']);
  });
});
