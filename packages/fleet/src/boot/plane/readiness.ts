/** Tells another program, by a line of JSON, when the fleet is ready: pods can be created, and all nodes are Ready. */
import { closeSync, writeSync } from 'node:fs';
import { messageOf } from '@actorlet/kubelet/machines/text/errors.ts';
import type { FleetOverview } from '../../overview.ts';
import type { FleetSurroundings } from '../surroundings.ts';

/** Standard input, output and error belong to the process. */
const OWN_FD_MIN = 3;

export class Readiness {
  readonly #o: { fd: number | undefined; say(text: string): void };
  readonly #kubeconfig: string;
  #isWelcome = false;
  #isTold = false;

  constructor(
    { kubeconfig, podsWelcome }: Pick<FleetSurroundings, 'kubeconfig' | 'podsWelcome'>,
    o: { fd: number | undefined; say(text: string): void },
  ) {
    this.#o = o;
    this.#kubeconfig = kubeconfig;
    podsWelcome().then(
      () => {
        this.#isWelcome = true;
      },
      (error: unknown) => o.say(`${messageOf(error)}\n`),
    );
  }

  look({ nodes }: FleetOverview): void {
    if (this.#isTold || !this.#isWelcome || nodes.ready < nodes.total) return;
    this.#isTold = true;
    const { fd, say } = this.#o;
    if (fd === undefined) return;
    try {
      writeSync(fd, `${JSON.stringify({ ready: true, kubeconfig: this.#kubeconfig, nodes: nodes.ready, pid: process.pid })}\n`);
      if (fd >= OWN_FD_MIN) closeSync(fd);
    } catch (error) {
      say(`--ready-fd ${fd}: nobody could be told that the fleet is ready: ${messageOf(error)}\n`);
    }
  }
}
