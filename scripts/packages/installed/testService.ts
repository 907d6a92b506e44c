// Loaded before a script that was written for `npm run dev`: a service in memory answers it, and the sign-in and the faucet of the local stack.

import { createTestService } from '@countersign/sdk/testing'

const service = createTestService({ provisioned: false, autoComplete: true })
const routes: Record<string, () => Response> = {
  '/auth/google': () => new Response(null, { status: 302, headers: { 'set-cookie': 'countersign-session=1; Path=/' } }),
  '/faucet': () => Response.json({}),
}

globalThis.fetch = async (input, init) => {
  const request = new Request(input, init)
  return routes[new URL(request.url).pathname]?.() ?? service.fetch(request)
}
