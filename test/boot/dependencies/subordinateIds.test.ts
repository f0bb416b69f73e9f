/** Ids for user namespaces of pods, as the machine tells them: a user, a program named getsubids, and what comes of it. */
import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { createClock } from '../../../src/boot/dependencies/clock.ts';
import { isUserNamespace } from '../../../src/boot/dependencies/machine/host.ts';
import { loadSubordinateIds } from '../../../src/boot/dependencies/machine/subordinateIds.ts';
import { firstIds } from '../../../src/machines/pods/workers/config/userNamespace.ts';
import { eachFolder } from '../../eachFolder.ts';

let dir: string;
eachFolder((made) => (dir = made));

/** `getsubids` that prints, and for groups prints something else where that is given. */
function load(o: { users?: string; prints?: string; groups?: string; fails?: boolean; there?: boolean; maxPods?: number } = {}) {
  const passwd = join(dir, 'passwd');
  writeFileSync(passwd, o.users ?? 'root:x:0:0::/root:/bin/sh\nkubelet:x:998:998::/:/bin/false\n');
  if (o.there !== false) {
    const program = join(dir, 'getsubids');
    const prints = o.prints ?? '0: kubelet 65536 7208960';
    writeFileSync(
      program,
      `#!/bin/sh\n${o.fails === true ? 'echo away >&2; exit 1' : ''}\n[ "$1" = -g ] && { echo '${o.groups ?? prints}'; exit; }\nprintf '%s\\n' '${prints}'\n`,
    );
    chmodSync(program, 0o755);
  }
  return loadSubordinateIds({
    clock: createClock(),
    env: { PATH: o.there === false ? dir : `${dir}:/usr/bin:/bin` },
    passwd,
    idsPerPod: 65_536,
    maxPods: o.maxPods ?? 110,
  });
}

describe('ids for user namespaces', () => {
  it('are those of user kubelet', async () => {
    expect(await load()).toEqual({ first: 65_536, length: 7_208_960 });
  });

  it('are all beyond the first run where there is no such user, or no such program', async () => {
    expect(await load({ there: false })).toBeNull();
    expect(await load({ users: 'root:x:0:0::/root:/bin/sh\n' })).toBeNull();
  });

  it.each([
    [{ fails: true }, 'error retrieving additional uids for user "kubelet": '],
    [{ groups: '0: kubelet 131072 65536' }, 'mismatched subuids and subgids for user "kubelet"'],
    [{ prints: '0: kubelet 65536 65536\n1: kubelet 200000 65536' }, 'it must contain only one line'],
    [{ prints: 'nothing' }, 'invalid line "nothing\\n"'],
    [{ prints: '0: kubelet -1 65536' }, 'error parsing line'],
    [{ prints: '0: kubelet 65536 4294967296' }, 'error parsing line'],
    [{ prints: '0: kubelet 100000 7208960' }, 'kubelet user assigned ID 100000 is not a multiple of 65536'],
    [{ prints: '0: kubelet 0 7208960' }, 'kubelet user assigned ID 0 must be greater or equal to 65536'],
    [{ prints: '0: kubelet 65536 7208961' }, 'kubelet user assigned IDs length 7208961 is not a multiple of 65536'],
    [{ maxPods: 111 }, 'kubelet user assigned IDs are not enough to support 111 pods'],
  ])('refuse the start with the words of the kubelet: %j', async (o, words) => {
    await expect(load(o)).rejects.toThrow(`kubelet mappings: ${words.startsWith('it must') ? 'error parsing line' : words}`);
  });

  it('are runs within what the machine gives', () => {
    const within = { first: 131_072, length: 196_608 };
    expect(firstIds({ idsPerPod: 65_536, podsMax: 110, within })).toEqual([131_072, 196_608, 262_144]);
    expect(firstIds({ idsPerPod: 65_536, podsMax: 2 })).toEqual([65_536, 131_072]);
  });
});

it.each([
  ['         0          0 4294967295\n', false],
  ['', false],
  ['         0       1000          1\n', true],
  ['         0       1000          1\n         1     100000      65536\n', true],
])('%j is a user namespace: %s', (map, is) => {
  expect(isUserNamespace(map)).toBe(is);
});
