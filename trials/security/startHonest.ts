import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import { percentile } from '@countersign/testing/stack'
import type { HonestData, HonestReport } from './honestWorker.ts'
import type { Target } from './startTarget.ts'

/** An honest user whose measurements can be read. */
export type Honest = {
  take(): Promise<HonestReport>
  stop(): Promise<HonestReport>
}

export async function startHonest(target: Target): Promise<Honest> {
  const { port, app: origin, alice } = target
  const workerData: HonestData = { port, origin, cookie: alice.cookie, firstNonce: chooseFirstNonce() }
  const worker = new Worker(new URL('./honestWorker.ts', import.meta.url), { workerData, execArgv: ['-C', 'source'] })
  await once(worker, 'online')
  const request = async (message: 'report' | 'stop'): Promise<HonestReport> => {
    worker.postMessage(message)
    const [report] = await once(worker, 'message')
    return report
  }
  return {
    take: () => request('report'),
    async stop() {
      const ended = once(worker, 'exit')
      const report = await request('stop')
      await ended
      return report
    },
  }
}

/** Nonces that neither `nextTx` nor another honest user reaches. */
const chooseFirstNonce = () => 2 ** 41 + Math.floor(Math.random() * 2 ** 40)

/** Compares two reports of the same run: undisturbed and under attack. */
export function compareHonest(quiet: HonestReport, loud: HonestReport) {
  const p99 = { quiet: percentile(quiet.signings, 0.99), loud: percentile(loud.signings, 0.99) }
  const made = loud.signings.length + loud.pings.length
  const failed = loud.failures.length
  return {
    success: `${(100 * (made / Math.max(1, made + failed))).toFixed(2)} % of ${made + failed}`,
    p99Ratio: p99.loud / p99.quiet,
    figures: {
      'honest signings': loud.signings.length,
      'honest p99': `${p99.loud.toFixed(0)} ms, ${(p99.loud / p99.quiet).toFixed(1)} × the undisturbed ${p99.quiet.toFixed(0)} ms`,
      'worst answer of /health': `${percentile(loud.pings, 1).toFixed(0)} ms, undisturbed ${percentile(quiet.pings, 1).toFixed(0)} ms`,
    },
  }
}
