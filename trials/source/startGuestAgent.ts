import { createHash } from 'node:crypto'
import { createServer } from 'node:http'
import { text } from 'node:stream/consumers'
import { parseQuote, type TdMeasurement, toTdMeasurement } from '@countersign/attestation'
import { createSimulator } from '@countersign/attestation/simulator'
import { concatBytes, fromHex, toHex } from '@countersign/protocol'

export type GuestEvents = Readonly<Record<string, string>>

/** dstack's `DSTACK_RUNTIME_EVENT_TYPE`. */
const RUNTIME_EVENT = 0x08000001

const sha384 = (bytes: Uint8Array) => createHash('sha384').update(bytes).digest()

/** dstack's guest agent on a socket, with simulated quotes. The event log has the measured `app-compose.json` and its application. */
export async function startGuestAgent(parameters: { socket: string; events: GuestEvents; rootSecret: string }) {
  const { socket, events, rootSecret } = parameters
  const simulator = createSimulator({ at: new Date() })
  const zero = new Uint8Array(48)
  const rtmr3 = Object.entries(events).reduce<Uint8Array>((register, [name, payload]) => {
    const prefix = new TextEncoder().encode(`\u{1}\0\0\u{8}:${name}:`)
    return sha384(concatBytes(register, sha384(concatBytes(prefix, fromHex(payload)))))
  }, zero)
  const quote = (reportData: Uint8Array) => simulator.quote({ reportData, rtmrs: [zero, zero, zero, rtmr3] })
  const log = Object.entries(events).map(([event, payload]) => {
    return { imr: 3, event_type: RUNTIME_EVENT, digest: '', event, event_payload: payload }
  })
  const server = createServer(async (request, response) => {
    const { report_data: reportData = '' } = JSON.parse(await text(request)) as { report_data?: string }
    const answer =
      request.url === '/GetKey'
        ? { key: rootSecret }
        : { quote: toHex(quote(fromHex(reportData))), event_log: JSON.stringify(log), report_data: reportData }
    response.end(JSON.stringify(answer))
  })
  await new Promise<void>((resolve) => server.listen(socket, resolve))
  const measurement: TdMeasurement = toTdMeasurement(parseQuote(Uint8Array.from(quote(new Uint8Array(64)))).body)
  return { measurement, stop: () => new Promise((resolve) => server.close(resolve).closeAllConnections()) }
}
