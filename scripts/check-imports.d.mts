/** Every import and re-export of a file. */
export function importsOf(text: string): { specifier: string; typeOnly: boolean; line: number }[];
