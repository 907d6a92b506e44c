import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import { percentile } from '@countersign/testing/stack'
import type { HonestData, HonestReport } from './honestWorker.ts'
import type { Target } from './startTarget.ts'

/** What an honest user saw since the last time it was asked. */
export type Honest = {
  take(): Promise<HonestReport>
  stop(): Promise<HonestReport>
}

export async function startHonest(target: Target): Promise<Honest> {
  const { port, app: origin, alice } = target
  const workerData: HonestData = { port, origin, cookie: alice.cookie, firstNonce: chooseFirstNonce() }
  const worker = new Worker(new URL('./honestWorker.ts', import.meta.url), { workerData, execArgv: ['-C', 'source'] })
  await once(worker, 'online')
  const ask = async (message: 'report' | 'stop'): Promise<HonestReport> => {
    worker.postMessage(message)
    const [report] = await once(worker, 'message')
    return report
  }
  return {
    take: () => ask('report'),
    async stop() {
      const ended = once(worker, 'exit')
      const report = await ask('stop')
      await ended
      return report
    },
  }
}

/** Far from those of `nextTx`, and never those of another honest user. */
const chooseFirstNonce = () => 2 ** 41 + Math.floor(Math.random() * 2 ** 40)

/** The slow end of one report beside that of another, from the same run. */
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
