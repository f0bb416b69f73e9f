/** An image of the embedded runtime. */

export interface CatalogueEntry {
  name: string;
  /** One line, shown by documentation and `--status`. */
  about: string;
  entrypoint: readonly string[];
  cmd: readonly string[];
}
