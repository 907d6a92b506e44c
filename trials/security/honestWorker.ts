import { parentPort, workerData } from 'node:worker_threads'
import { createTx, toDigest } from '@countersign/testing/stack'
import { type Answer, createCaller } from './createCaller.ts'

/** The service and session to use, and the first nonce of this worker. */
export type HonestData = { port: number; origin: string; cookie: string; firstNonce: number }

/** Durations in milliseconds, in order, and descriptions of failures. */
export type HonestReport = { signings: number[]; pings: number[]; failures: string[] }

const PING_EVERY_MS = 15

/*
 * An honest user on a separate thread, so that the attacker's load doesn't distort its measurements. It signs one transaction after the
 * other, and polls `/health`, which depends only on the service's event loop.
 */
const { port, origin, cookie, firstNonce } = workerData as HonestData
const signer = createCaller({ port, connections: 1 })
const pinger = createCaller({ port, connections: 1 })
let report: HonestReport = { signings: [], pings: [], failures: [] }
let isOver = false
let nonce = firstNonce

async function measure(times: (all: HonestReport) => number[], call: () => Promise<Answer>) {
  const own = report
  try {
    const { status, ms, body } = await call()
    times(own).push(ms)
    if (status !== 200) own.failures.push(`${status} ${/"code":"(\w+)"/.exec(body)?.[1]}`)
  } catch (error) {
    own.failures.push(error instanceof Error ? error.message : String(error))
  }
}

function sign() {
  nonce += 1
  const txMetadata = createTx(nonce, { to: `0x${'22'.repeat(20)}` })
  const digest = toDigest(txMetadata)
  return signer.call({
    method: 'POST',
    path: '/sign/digest',
    headers: [
      ['Origin', origin],
      ['Cookie', cookie],
      ['Content-Type', 'application/json'],
    ],
    body: JSON.stringify({ digest, txMetadata }),
  })
}

async function signAlways() {
  while (!isOver) await measure((all) => all.signings, sign)
}

async function pingAlways() {
  while (!isOver) {
    await measure(
      (all) => all.pings,
      () => pinger.call({ path: '/health' }),
    )
    await new Promise((resolve) => setTimeout(resolve, PING_EVERY_MS))
  }
}

parentPort?.on('message', (message: 'report' | 'stop') => {
  parentPort?.postMessage(report)
  report = { signings: [], pings: [], failures: [] }
  if (message === 'stop') isOver = true
})

await Promise.all([signAlways(), pingAlways()])
signer.close()
pinger.close()
parentPort?.close()
