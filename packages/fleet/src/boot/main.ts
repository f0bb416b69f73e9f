/** Entry of `actorlet fleet`, which starts it with its own name first. */
import { runFleet } from './command.ts';

const argv = process.argv.slice(2);
process.exit(await runFleet(argv[0] === 'fleet' ? argv.slice(1) : argv));
