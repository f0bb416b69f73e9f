/** Where an HTTP probe may lead: what `golden/services/probes.test.ts` has no row for. */
import { expect, it } from 'vitest';
import { httpProbe, redirectOf } from '../../src/machines/pod/probes/netRequests.ts';
import { target } from './fixtures.ts';

it.each<[string, object, string]>([
  ['adds the slash that is missing', { path: 'ready' }, 'http://10.1.2.3/ready'],
  ['cannot be led to another host by its path', { path: '//evil.test/x', port: 81 }, 'http://10.1.2.3:81//evil.test/x'],
  ['keeps the query', { path: '/health?full=1&x=a%20b' }, 'http://10.1.2.3/health?full=1&x=a%20b'],
])('%s', (_, more, url) => {
  const wanted = httpProbe(target({ httpGet: { port: 80, path: '/', scheme: 'HTTP', ...more } }));
  expect(wanted.ok ? wanted.value.url : wanted.message).toBe(url);
});

it.each([
  ['in short form', '//other.test/b'],
  ['of something else than HTTP', 'file:///etc/passwd'],
])('a redirect to another host is not followed: %s (trap 43)', (_, location) => {
  const present = { url: 'http://10.1.2.3:8080/a', headers: {}, host: 'shop.example' };
  expect(redirectOf({ first: present.url, present }, { status: 302, location })).toBeNull();
});
