/** Which credentials of pull secrets an image is pulled with. */
import { describe, expect, it } from 'vitest';
import { type PullSecret, pullCredentials as stepsOf } from '../../../src/machines/runtime/imagePuller/keyring.ts';
import { pullCredentials } from '../pullCredentials.ts';

const bytes = (s: string) => new TextEncoder().encode(s);
function config(auths: Record<string, object>, name = 's'): PullSecret {
  return {
    namespace: 'ns',
    name,
    secret: { uid: `uid-${name}`, type: 'kubernetes.io/dockerconfigjson', data: { '.dockerconfigjson': bytes(JSON.stringify({ auths })) } },
  };
}
const login = (username: string) => ({ username, password: `pw-${username}` });
function users(image: string, ...secrets: PullSecret[]): (string | undefined)[] {
  const result = pullCredentials(secrets, image);
  if (!result.ok) throw new Error(result.message);
  return result.auths.map((a) => a.auth.username);
}

describe('credentials of pull secrets', () => {
  it('are read one secret after the other: each may have tens of thousands', () => {
    expect([...stepsOf([config({}), config({})], 'r.io/a')]).toHaveLength(2);
  });
  it.each([
    ['registry.example.com', 'registry.example.com/team/app:1', true],
    ['https://registry.example.com', 'registry.example.com/app', true],
    ['https://registry.example.com/v2/', 'registry.example.com/app', true],
    ['registry.example.com/team', 'registry.example.com/team/app', true],
    ['registry.example.com/team', 'registry.example.com/other/app', false],
    ['registry.example.com', 'registry.example.com:5000/app', false],
    ['registry.example.com:5000', `registry.example.com:5000/app@sha256:${'a'.repeat(64)}`, true],
    ['*.example.com', 'registry.example.com/app', true],
    ['*.example.com', 'a.b.example.com/app', false],
    ['reg[a-z]stry.example.com', 'registry.example.com/app', true],
    ['[^r]*.example.com', 'registry.example.com/app', false],
    ['registry.example.com', 'registry-example-com/app', false],
    ['docker.io', 'busybox', true],
    ['https://index.docker.io/v1/', 'busybox:1', true],
    ['index.docker.io', 'team/app', true],
    ['index.docker.io', 'docker.io/team/app', true],
    ['index.docker.io', 'registry.example.com/app', false],
    ['localhost:5000', 'localhost:5000/app', true],
  ])('for %s and image %s: %s', (location, image, fits) => {
    expect(users(image, config({ [location]: login('me') }))).toEqual(fits ? ['me'] : []);
  });

  it('all that match are tried, the more specific first', () => {
    const one = config({ 'r.example.com': login('host'), 'r.example.com/team': login('team') });
    const two = config({ 'https://r.example.com': login('second'), 'other.example.com': login('no') });
    expect(users('r.example.com/team/app', one, two)).toEqual(['team', 'host', 'second']);
  });

  it('are read from the auth field, which wins, and from the older type of secret', () => {
    const auth = btoa('me:se:cret');
    const old: PullSecret = {
      namespace: 'ns',
      name: 'old',
      secret: {
        uid: 'u',
        type: 'kubernetes.io/dockercfg',
        data: { '.dockercfg': bytes(JSON.stringify({ 'r.io': { auth, username: 'x' } })) },
      },
    };
    expect(pullCredentials([old], 'r.io/a')).toEqual({
      ok: true,
      auths: [{ auth: { username: 'me', password: 'se:cret' }, owner: { kind: 'secret', uid: 'u', namespace: 'ns', name: 'old' } }],
    });
  });

  it('of other types, or empty, are none', () => {
    const opaque: PullSecret = { namespace: 'ns', name: 'o', secret: { type: 'Opaque', data: { '.dockerconfigjson': bytes('{') } } };
    const empty: PullSecret = { namespace: 'ns', name: 'e', secret: { type: 'kubernetes.io/dockerconfigjson', data: {} } };
    expect(users('r.io/a', opaque, empty)).toEqual([]);
  });

  it.each([
    ['no JSON', '{"auths": {"r.io": {"password": "hunter2"'],
    ['no map', '{"auths": ["hunter2"]}'],
    ['an entry that is no object', '{"auths": {"r.io": "hunter2"}}'],
    ['an auth field without a colon', JSON.stringify({ auths: { 'r.io': { auth: btoa('hunter2') } } })],
    ['an auth field that is not base64', '{"auths": {"r.io": {"auth": "hunter2!"}}}'],
  ])('that are %s stop the pull, and nothing of them is told', (_, text) => {
    const bad: PullSecret = {
      namespace: 'ns',
      name: 'bad',
      secret: { type: 'kubernetes.io/dockerconfigjson', data: { '.dockerconfigjson': bytes(text) } },
    };
    const result = pullCredentials([bad], 'r.io/a');
    expect(result).toMatchObject({ ok: false, message: expect.stringContaining('image pull secret "bad"') });
    expect(JSON.stringify(result)).not.toMatch(/hunter2|aHVudGVy/);
  });

  it('a pattern made to be slow is not', () => {
    const location = `${'a*'.repeat(2_000)}b.example.com`;
    expect(users(`${'a'.repeat(60)}.example.com/app`, config({ [location]: login('me') }))).toEqual([]);
  });
});
