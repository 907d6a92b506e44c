import { setTimeout } from 'node:timers/promises'
import { runExample } from './runExample.ts'

// Addresses of `npm run dev -- --log`.
const webUrl = 'http://localhost:5173'
const apiBaseUrl = 'http://localhost:8080'

/** Waits until the stack has started, which may take a minute. */
async function waitFor(url: string): Promise<void> {
  const deadline = Date.now() + 180_000
  while (!(await fetch(url).catch(() => undefined))?.ok) {
    if (Date.now() > deadline) throw new Error(`${url} does not answer: start npm run dev -- --log`)
    await setTimeout(500)
  }
}

await waitFor(`${apiBaseUrl}/health/ready`)
await waitFor(`${webUrl}/config.json`)
const proofs = await runExample(webUrl)
process.exitCode = proofs.every(({ conclusion }) => conclusion === 'accepted') ? 0 : 1
