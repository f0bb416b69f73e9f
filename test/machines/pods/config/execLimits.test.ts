/** Environment, command and arguments are bounded as execve bounds them, before the memory is taken. */
import { describe, expect, it } from 'vitest';
import type { Container, EnvVar } from '../../../../src/machines/kube/podTable.ts';
import { EXEC_BYTES_MAX, EXEC_STRING_BYTES_MAX, expand } from '../../../../src/machines/pod/execLimits.ts';
import { execCommand } from '../../../../src/machines/pod/probes/netRequests.ts';
import { generateContainerConfig } from '../../../../src/machines/pods/workers/config/containerConfig.ts';
import { subPathParts } from '../../../../src/machines/services/volumes/subPaths.ts';
import { container, FACTS, pod } from '../fixtures.ts';

const made = (more: Partial<Container>) =>
  generateContainerConfig({
    pod: pod(),
    container: container('web', more),
    kind: 'regular',
    restartCount: 0,
    imageRef: 'sha256:1',
    imageUser: null,
    podIPs: [],
    facts: FACTS,
    mounts: [],
  });
/** `V1` of 16 bytes, each next one twice the one before. */
const bomb = (count: number): EnvVar[] =>
  Array.from({ length: count }, (_, i) => ({ name: `V${i}`, value: i === 0 ? 'x'.repeat(16) : `$(V${i - 1})$(V${i - 1})` }));
/** Fits as one string, with its name, `=` and zero byte. */
const LONGEST = 'x'.repeat(EXEC_STRING_BYTES_MAX - 'A='.length - 1);
const refusal = (more: Partial<Container>) => {
  const config = made(more);
  return config.ok ? 'no refusal' : config.message;
};

describe('what a container is started with', () => {
  it('of variables that double is refused by name, without the memory they would take', () => {
    const before = process.memoryUsage().rss;
    expect(refusal({ env: bomb(27) })).toBe('container "web": env "V13": longer than the 131072 bytes that Linux takes as one string');
    expect(process.memoryUsage().rss - before).toBeLessThan(64 * 1024 ** 2);
  });

  it('may be one string of 128 KiB with its zero byte, and not a byte more', () => {
    expect(made({ env: [{ name: 'A', value: LONGEST }] }).ok).toBe(true);
    expect(refusal({ env: [{ name: 'A', value: `${LONGEST}x` }] })).toContain('variable "A" is longer than the 131072 bytes');
    expect(refusal({ env: [{ name: 'A', value: `${LONGEST.slice(1)}é` }] })).toContain('variable "A" is longer than');
    expect(refusal({ args: ['x'.repeat(EXEC_STRING_BYTES_MAX)] })).toContain('args[0] is longer than the 131072 bytes');
  });

  it('is bounded in sum, whatever adds to it', () => {
    const full = (count: number) => Array.from({ length: count }, (_, i) => ({ name: `${i}`, value: LONGEST.slice(2) }));
    expect(made({ env: full(47) }).ok).toBe(true);
    expect(refusal({ env: full(60) })).toContain(
      `variable "47" takes environment, command and arguments beyond the ${EXEC_BYTES_MAX} bytes`,
    );
    // A hundred references, each of a size that is allowed.
    const env = [{ name: 'A', value: LONGEST }];
    const many = Array.from({ length: 100 }, () => '$(A)');
    expect(refusal({ env, command: many })).toContain('command[46] takes environment, command and arguments beyond');
    expect(refusal({ env, args: many })).toContain('args[46] takes');
    expect(execCommand({ env }, many)).toMatchObject({ ok: false, message: expect.stringContaining('command[47] takes') });
  });

  it('counts a name once, whatever is written over', () => {
    expect(made({ env: Array.from({ length: 200 }, () => ({ name: 'A', value: LONGEST })) }).ok).toBe(true);
  });

  it('makes no path out of more than one variable may hold', () => {
    const mounts = [{ name: 'v', mountPath: '/v', subPathExpr: '$(A)'.repeat(5_000) }];
    const parts = subPathParts(container('web', { volumeMounts: mounts }), () => ({ ok: true, value: new Map([['A', LONGEST]]) }));
    expect(parts).toMatchObject({ ok: false, message: expect.stringContaining('subPathExpr') });
  });
});

it('expansion takes time with the length of the text, also where nothing is closed', () => {
  const took = (text: string) => {
    const before = process.cpuUsage();
    expand(text, () => undefined);
    return process.cpuUsage(before).user / 1_000;
  };
  took('$('.repeat(30_000));
  expect(took('$('.repeat(60_000))).toBeLessThan(200);
  expect(took('$'.repeat(130_000))).toBeLessThan(200);
});
