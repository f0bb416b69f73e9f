/** How many records of pulls are on disk, counted at the scrape. */
import { codeOf } from '../../../machines/text/errors.ts';
import type { HostFs, Metrics } from '../../../ports/ports.ts';

/** `dir`: of the records, see the image puller. */
export function pullRecordMetrics(
  metrics: Metrics,
  { fs, dir }: { fs: Pick<HostFs, 'readdir'>; dir: string },
): { measure(): Promise<void> } {
  const pulled = metrics.gauge('kubelet_imagemanager_ondisk_pulledrecords', 'Records on disk of images that this node pulled');
  const pulling = metrics.gauge('kubelet_imagemanager_ondisk_pullintents', 'Notes on disk of pulls that are under way');
  const count = async (folder: string): Promise<number | null> => {
    try {
      return (await fs.readdir(`${dir}/${folder}`)).filter((name) => !name.endsWith('.tmp')).length;
    } catch (error) {
      // Without a pull there is no folder. What cannot be read leaves the figure as it was.
      return codeOf(error) === 'ENOENT' ? 0 : null;
    }
  };
  return {
    async measure() {
      const [records, intents] = await Promise.all([count('pulled'), count('pulling')]);
      if (records !== null) pulled.set(records);
      if (intents !== null) pulling.set(intents);
    },
  };
}
