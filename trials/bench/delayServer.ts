import { setTimeout } from 'node:timers/promises'
import { startProxy } from '../log/proxy.ts'

/** Stands before a service, and makes each call of it take so much longer, as a distance would. In a process of its own, so that the load does not. */
const { TARGET = '', DELAY_MS = '0' } = process.env
const { url, stop } = await startProxy(TARGET, async (_, forward) => {
  await setTimeout(Number(DELAY_MS))
  return forward()
})
console.log(JSON.stringify({ msg: 'Started the delay', address: url }))
process.once('SIGTERM', () => void stop())
