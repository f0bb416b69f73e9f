/** Every import and re-export of a file. */
export function importsOf(text: string): { specifier: string; typeOnly: boolean; line: number }[];
/** Whether it names a package of this repository. */
export function isOwn(specifier: string): boolean;
/** The file that the name of one is, from the root of the repository. */
export function sourceOf(specifier: string): string;
/** The table of docs/architecture/source-layout.md. */
export function table(): string;
/** The drawing of ARCHITECTURE.md. */
export function drawing(root: string): string;
/** What each package of `root` needs, by its name. */
export function packages(root: string): Record<string, { needs: string[]; doors: string[]; lines: number; tests: number }>;
/** Names of the packages that the sources of `folder` import. */
export function needed(root: string, folder: string): string[];
