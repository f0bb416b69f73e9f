/** Names of logs. The golden tables status/lastWords and runtime/runtimeViews have messages of the dead, and what is collected. */
import { describe, expect, it } from 'vitest';
import { pathName } from '../../../src/machines/pod/pathName.ts';
import {
  containerIdOfLink,
  containerLogLink,
  containerLogLinkName,
  logFilesOf,
  podFolder,
  podLogDir,
  podUidOfLogDir,
  restartCountFromLogNames,
} from '../../../src/machines/pod/runtime/logNames.ts';

describe('log names', () => {
  const ref = podFolder({ uid: 'u-1', name: 'p', namespace: 'ns' });
  const web = pathName('web');
  it('are made and read back', () => {
    expect(podLogDir('/var/log/pods', ref)).toBe('/var/log/pods/ns_p_u-1');
    expect(podUidOfLogDir('ns_p_u-1')).toBe('u-1');
    expect(podUidOfLogDir('other')).toBeUndefined();
    expect(containerLogLink('/l', ref, { container: web, id: pathName('abcdef0123') })).toBe('/l/p_ns_web-abcdef0123.log');
    expect(containerIdOfLink('p_ns_web-abcdef0123.log')).toBe('abcdef0123');
    expect(containerIdOfLink('p_ns_web-abc.log')).toBeUndefined();
    expect(containerLogLinkName({ ...ref, name: pathName('n'.repeat(253)) }, web, pathName('abcdef')).length).toBe(255);
  });

  it('trap 20: the restart count goes on from the log files when the runtime has forgotten', () => {
    expect(restartCountFromLogNames([])).toBe(0);
    expect(restartCountFromLogNames(['0.log', '10.log', '9.log.20240501-100000.gz', 'x.log', '11.txt'])).toBe(11);
    expect(logFilesOf(1, ['1.log', '11.log', '1.log.20240501-100000', '2.log'])).toEqual(['1.log', '1.log.20240501-100000']);
  });
});
