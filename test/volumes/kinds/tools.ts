/** What kinds of volumes are given on a node without an API, drivers and peers, which nobody hears. */
import { CsiLedger } from '../../../src/actors/services/volumes/csi/state.ts';
import { Plugins } from '../../../src/actors/services/volumes/plugins.ts';
import { FACTS } from '../../machines/pods/fixtures.ts';
import { NO_PEERS } from '../../peers.ts';
import { collectingLogger } from '../../supervision/fakePorts.ts';

type Tools = ConstructorParameters<typeof Plugins>[0];

/** `ports`: those that the test needs. */
export function quietPlugins({
  ports,
  csi,
  ...more
}: { ports: object; csi?: Partial<Tools['csi']> } & Partial<Omit<Tools, 'ports' | 'csi'>>): Plugins {
  return new Plugins({
    ports: ports as Tools['ports'],
    log: collectingLogger([]),
    facts: () => FACTS,
    objects: null,
    claims: null,
    growth: null,
    csi: {
      drivers: () => new Map(),
      ...NO_PEERS,
      ledger: new CsiLedger(),
      exhausted: () => undefined,
      controllerAttaches: true,
      inUseChanged: () => undefined,
      api: null,
      reportedInUse: () => [],
      ...csi,
    },
    warn: () => undefined,
    say: () => undefined,
    swappable: () => undefined,
    measure: () => (work) => work,
    serves: () => undefined,
    ...more,
  });
}
