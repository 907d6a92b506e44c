import type { BrowserContext, Page, Request } from 'playwright'

export type Tab = {
  page: Page
  /** The tab's requests to the service, oldest first, without Chromium's preflights. */
  requests: readonly Request[]
  /** The same as text with the status: `GET /auth/me 401`. A response hidden from the page counts as `failed`. */
  calls(): Promise<string[]>
  /** Uncaught errors of the page. */
  errors: readonly Error[]
}

/** Opens a page and records its requests to the service. */
export async function openTab(
  context: BrowserContext,
  { url, apiBaseUrl }: { url: string; apiBaseUrl: string },
): Promise<Tab> {
  const page = await context.newPage()
  const requests: Request[] = []
  const errors: Error[] = []
  page.on('request', (request) => {
    if (new URL(request.url()).origin === apiBaseUrl) requests.push(request)
  })
  page.on('pageerror', (error) => errors.push(error))
  await page.goto(url)
  return { page, requests, errors, calls: () => Promise.all(requests.map(toWords)) }
}

async function toWords(request: Request): Promise<string> {
  const response = await request.response()
  return `${request.method()} ${new URL(request.url()).pathname} ${response?.status() ?? 'failed'}`
}
