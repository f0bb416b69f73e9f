/** Edges that no seed takes, by machine, each with the reason. */
export const UNTAKEN: Readonly<Record<string, Readonly<Record<string, string>>>> = {};
