/** Facts that no view tells. */

/** The wall clock less the monotonic one, in ms. */
export const CLOCK = '#clock';
/** How many faults are at work; null: they may not be injected. */
export const FAULTS = '#faults';
