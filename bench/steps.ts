/**
 * Steps per life of a pod: what the node does for each of many pods of the API, from seen to Ready and from deleted to gone, on the
 * hollow runtime in virtual time. It counts and does not time, so two commits compare exactly, on any machine.
 * Options: --pods=100 --volumes=1 (an emptyDir each) --out=FILE
 */
import { countSteps, type Phase } from '../test/integration/countSteps.ts';
import { numberOption, report, say } from './lib/report.ts';

const pods = numberOption('pods', 100);
const volumes = numberOption('volumes', 1);
const perPod = await countSteps({ pods, volumes });
const totals = (phase: Phase) => Object.fromEntries(Object.entries(phase).map(([what, { total }]) => [what, total]));
say(`per pod, start ${JSON.stringify(totals(perPod.started))}`);
say(`per pod, end ${JSON.stringify(totals(perPod.ended))}`);
await report('steps', { pods, volumes, perPod });
