import { pullCredentials as steps } from '../../src/machines/runtime/imagePuller/keyring.ts';

/** All steps at once. */
export function pullCredentials(...input: Parameters<typeof steps>) {
  const reading = steps(...input);
  for (;;) {
    const step = reading.next();
    if (step.done === true) return step.value;
  }
}
