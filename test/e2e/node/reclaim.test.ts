/** What a daemon reclaims on a real containerd: logs that grew too large, and images that nobody uses. */
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import type { Daemon } from '../daemon.ts';
import type { Containerd } from '../lab/containerd.ts';
import { PAUSE_IMAGE } from '../lab/images.ts';
import { call } from '../lab/pods.ts';
import { IMAGE, manifest, sh } from '../manifests.ts';
import { onContainerd } from '../onContainerd.ts';
import { containers, exec } from '../runtime.ts';

/** containerLogMaxSize. */
const LARGE_BYTES = 16 * 1024;

let lab: Containerd;
let daemon: Daemon;

onContainerd((made) => ({ lab, daemon } = made), {
  config: {
    containerLogMaxSize: String(LARGE_BYTES),
    containerLogMaxFiles: 4,
    containerLogMonitorInterval: '3s',
  },
  flags: [`--pod-infra-container-image=${PAUSE_IMAGE}`],
});

/** Names of images, without those by digest. */
async function images(): Promise<string[]> {
  const { images: all } = await call(lab.cri, 'ListImages', {});
  return all.flatMap((i) => i.repoTags).sort();
}

/** Text of the logs of a container, oldest first; undefined while they are being changed, or are not yet what they will be. */
function settledLogs(dir: string): string | undefined {
  try {
    const names = readdirSync(dir).sort();
    const [present, ...rotated] = names;
    const kinds = rotated.map((name) => name.replace(/\d{8}-\d{6}/, 'TIME'));
    if (present !== '0.log' || kinds.join() !== '0.log.TIME.gz,0.log.TIME.gz,0.log.TIME') return undefined;
    if (statSync(join(dir, present)).size >= LARGE_BYTES) return undefined;
    const texts = [...rotated, present].map((name) => {
      const bytes = readFileSync(join(dir, name));
      return (name.endsWith('.gz') ? gunzipSync(bytes) : bytes).toString('utf8');
    });
    return texts.join('');
  } catch (error) {
    // Rotated between two of these steps.
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
    throw error;
  }
}

describe('a container that writes much', () => {
  it('has its log rotated and compressed, and no line is lost', async () => {
    const counting =
      'trap "exit 0" TERM; i=0; while [ ! -e /enough ]; do i=$((i+1)); echo "line $i of many"; [ $((i%100)) -ne 0 ] || sleep 0.3; done; echo "there were $i"; while :; do sleep 0.1; done';
    daemon.put('much.yaml', manifest('much', [sh('main', counting)]));
    const pod = await daemon.podWhere('much', 'much runs', (p) => p.status.phase === 'Running', 60_000);
    const dir = join(daemon.podLogs, `${pod.metadata.namespace}_${pod.metadata.name}_${pod.metadata.uid}`, 'main');
    await daemon.wait('two logs to be compressed', () => readdirSync(dir).filter((n) => n.endsWith('.gz')).length >= 2, {
      timeoutMs: 120_000,
    });
    const [writer] = await containers(lab, 'much');
    expect((await exec(lab, writer?.id ?? '', 'touch /enough')).code).toBe(0);
    const text = await daemon.wait(
      'there to be as many files as may be, the last line in one of them',
      () => {
        const logs = settledLogs(dir);
        return logs?.includes('there were') === true ? logs : undefined;
      },
      { timeoutMs: 120_000 },
    );
    const lines = [...text.matchAll(/line (\d+) of many/g)].map((m) => Number(m[1]));
    expect(lines.length).toBeGreaterThan(100);
    expect(lines).toEqual(lines.map((_, i) => (lines[0] ?? 0) + i));
    expect(lines.at(-1)).toBe(Number(/there were (\d+)/.exec(text)?.[1]));
  });
});

describe('images', () => {
  const restart = async () => {
    await daemon.end('SIGTERM');
    daemon.configure({ imageGCHighThresholdPercent: 1, imageGCLowThresholdPercent: 0 });
    await daemon.start();
  };
  it('of containers that run stay, however full their file system is said to be', async () => {
    const before = await images();
    await restart();
    await daemon.wait('a collection that freed too little', () => daemon.log().includes('collecting images failed'), {
      timeoutMs: 60_000,
    });
    const left = await images();
    expect(left).toContain(IMAGE);
    expect(left).toContain(PAUSE_IMAGE);
    expect(before).toEqual(expect.arrayContaining(left));
  });

  it('that nobody uses any more are old to a new daemon, and go; that of sandboxes stays', async () => {
    daemon.remove('much.yaml');
    await daemon.wait('its container to go', async () => (await containers(lab)).length === 0, { timeoutMs: 90_000 });
    await restart();
    await daemon.wait('the image to go', async () => !(await images()).includes(IMAGE), { timeoutMs: 120_000 });
    expect(await images()).toContain(PAUSE_IMAGE);
  });
});
