import type { BrowserContext, Page, Request } from 'playwright'

export type Tab = {
  page: Page
  /** The requests of this tab to the service, oldest first. Chromium keeps its preflights to itself. */
  requests: readonly Request[]
  /** The same in words, each with its status: `GET /auth/me 401`. What the browser withheld from the page has `failed`. */
  calls(): Promise<string[]>
  /** Uncaught errors of the page. */
  errors: readonly Error[]
}

/** Opens a page, and listens to what it asks of the service. */
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
