/** What has to be undone, in reverse order. Node's own `DisposableStack` is younger than the oldest Node that runs us. */
export class Cleanup implements Disposable {
  readonly #undo: (() => void)[] = [];

  use<T extends Disposable>(thing: T): T {
    this.defer(() => thing[Symbol.dispose]());
    return thing;
  }
  defer(undo: () => void): void {
    this.#undo.push(undo);
  }

  /** May be repeated. All is undone, also after something has thrown; the first error is thrown then. */
  [Symbol.dispose](): void {
    const errors: unknown[] = [];
    for (const undo of this.#undo.splice(0).reverse()) {
      try {
        undo();
      } catch (error) {
        errors.push(error);
      }
    }
    if (errors.length > 0) throw errors[0];
  }
}
