/** Lists of the API server, page by page. */
import { isRecord } from '@actorlet/kubelet/machines/shape/conform.ts';
import { ApiError, type Asking, asked } from '../../watches/asking.ts';

const PAGE_MAX = 500;
const TOO_LARGE = 'EFBIG';
/** Of all pages, which are smaller where objects are large. Empty where the API server has no such list. @throws ApiError */
export async function* items(of: { path: string; query?: Record<string, string> }, o: Asking): AsyncGenerator<Record<string, unknown>> {
  let next = '';
  let limit = PAGE_MAX;
  for (;;) {
    const query = { ...of.query, limit: String(limit), ...(next === '' ? {} : { continue: next }) };
    const page = await asked({ verb: 'GET', path: of.path, query }, o).catch((error: unknown) => {
      if (!(error instanceof ApiError) || error.reason !== TOO_LARGE || limit === 1) throw error;
      return TOO_LARGE;
    });
    if (page === TOO_LARGE) {
      limit = Math.ceil(limit / 4);
      continue;
    }
    const { items: some, metadata } = isRecord(page) ? page : {};
    for (const item of Array.isArray(some) ? some : []) if (isRecord(item)) yield item;
    next = isRecord(metadata) && typeof metadata.continue === 'string' ? metadata.continue : '';
    if (next === '') return;
  }
}
