/** Faults that do nothing until a call, a hint, a message or a file event meets them: the interceptors ask for them. */
import { hit, type Stage } from './act.ts';

export function callActs({ windows }: Stage) {
  const open = (f: Parameters<typeof windows.open>[0]) => {
    windows.open(f);
    return hit();
  };
  return {
    cri: open,
    hints: open,
    'disk.slow': open,
    'disk.error': open,
    'disk.full': open,
    'disk.deaf': open,
    'pressure.disk': open,
    'http.down': open,
    mailbox: open,
  };
}
