/**
 * One after the other for acts on the same thing: a pod's devices, say, or a file. With the port of files as
 * owner it outlives actors: a killed one's calls go on, and what it still writes, or renames, would come after what its
 * successor writes, and undo it. Such calls end with the process, and so does this.
 */
const turns = new WeakMap<object, Map<string, Promise<void>>>();

/** Does `work` when all that was begun under this owner and key before has ended, whatever came of it. */
export function inTurn<T>(owner: object, key: string, work: () => Promise<T>): Promise<T> {
  const keys = turns.get(owner) ?? new Map<string, Promise<void>>();
  turns.set(owner, keys);
  const mine = (keys.get(key) ?? Promise.resolve()).then(work);
  const over = mine.then(
    () => {},
    () => {},
  );
  keys.set(key, over);
  void over.then(() => {
    if (keys.get(key) === over) keys.delete(key);
  });
  return mine;
}
